use std::io;

/// A part of a run over several machines: what it does it is told on its standard input, and what it sees it tells on its output.
pub fn part() -> u8 {
    let interrupts = brownout_lab::catch_interrupts();
    brownout_lab::machines::part(io::stdin(), io::stdout(), interrupts)
}
