//! How far a thread has come in writing every key of a population.

use super::{Ended, Ending, Received, ServerError, fill_progress::FillProgress, keys::Keys};
use crate::ErrorClass;

/// What one thread has still to write of a population, in the order of the keys; what has failed comes last.
#[derive(Debug, Default)]
pub(crate) struct Filling {
    number: u64,
    /// Index of the next key that was never tried.
    next: u64,
    /// Keys whose write has failed.
    failed: Vec<u64>,
    /// A write was permanently refused.
    over: bool,
}

impl Filling {
    /// The filling that has begun last.
    pub(crate) fn begin(progress: &FillProgress) -> Self {
        Filling { number: progress.tally().number, ..Filling::default() }
    }

    /// Distinguishes its writes from those of an earlier one.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The key to write next; `None`: there is none now.
    pub(crate) fn next(&mut self, keys: &Keys) -> Option<u64> {
        if self.over {
            None
        } else if self.next < keys.count() {
            self.next += 1;
            Some(keys.at(self.next - 1))
        } else {
            self.failed.pop()
        }
    }

    /// A server has answered a write of filling `number` with an error; one that another attempt cannot change ends it.
    pub(crate) fn refused(
        &mut self,
        number: u64,
        error: &ServerError<'_>,
        received: &Received,
        progress: &FillProgress,
    ) {
        if error.class == ErrorClass::Invalid && !received.late {
            self.over |= number == self.number;
            let reason = format!("{} (code {:#06x})", error.message, error.code);
            progress.refuse(number, received.coordinator, reason);
        }
    }

    /// The write of `key` has ended, in filling `number`.
    pub(crate) fn ended(&mut self, number: u64, key: u64, ending: &Ending, progress: &FillProgress) {
        let acknowledged = ending.result == Ended::Ok;
        progress.written(number, acknowledged);
        if !acknowledged && number == self.number {
            self.failed.push(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_written_once_and_again_if_that_failed() {
        let progress = FillProgress::default();
        progress.set(Some(3));
        let keys = Keys::new(0, 1, 3);
        let mut filling = Filling::begin(&progress);
        let number = filling.number();
        assert_eq!([(); 3].map(|()| filling.next(&keys)), [Some(0), Some(1), Some(2)]);
        let ending = |result| Ending { result, requests: 1 };
        filling.ended(number, 0, &ending(Ended::Ok), &progress);
        filling.ended(number, 1, &ending(Ended::TimedOut), &progress);
        filling.ended(number + 1, 2, &ending(Ended::TimedOut), &progress);
        assert_eq!([filling.next(&keys), filling.next(&keys)], [Some(1), None], "another filling's is not this one's");
        assert_eq!((progress.tally().done, progress.tally().retried), (1, 1));
    }

    #[test]
    fn what_a_server_will_never_take_ends_the_filling_and_is_told() {
        let progress = FillProgress::default();
        progress.set(Some(3));
        let keys = Keys::new(0, 1, 3);
        let mut filling = Filling::begin(&progress);
        let error = |class| ServerError { class, code: 8, message: "database space exceeded" };
        let received = Received { at_ns: 0, late: false, step: 0, coordinator: 2 };
        filling.refused(filling.number(), &error(ErrorClass::Overloaded), &received, &progress);
        assert!(filling.next(&keys).is_some() && progress.tally().refused.is_none());
        filling.refused(filling.number(), &error(ErrorClass::Invalid), &received, &progress);
        assert_eq!(filling.next(&keys), None);
        assert_eq!(progress.tally().refused, Some((2, "database space exceeded (code 0x0008)".to_owned())));
    }
}
