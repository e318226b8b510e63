//! What overlays need of this machine beside what every lab needs. WireGuard needs nothing: it is a part of this program.

use brownout_network::overlay::openvpn_program;

use super::check::{Check, CheckState};

/// Whether the kernel makes VXLAN interfaces; `refused`: what it said in a lab, if it does not.
pub(super) fn vxlan(refused: Option<&str>) -> Check {
    match refused {
        None => Check::good("VXLAN", "the kernel makes its interfaces"),
        Some(reason) => Check::not(
            CheckState::Limited,
            "VXLAN",
            format!("the kernel makes no such interface: {reason}"),
            "load its driver with `modprobe vxlan`; without it, overlay: wireguard and openvpn are available",
        ),
    }
}

/// Whether OpenVPN is installed; without it, the machine is in this state.
pub(super) fn openvpn(without: CheckState) -> Check {
    match openvpn_program() {
        Some(program) => Check::good("OpenVPN", format!("{}", program.display())),
        None => Check::not(
            without,
            "OpenVPN",
            "there is no program 'openvpn', which overlay: openvpn needs",
            "on Debian or Ubuntu, as root: apt-get install openvpn; or choose another overlay, which needs no program",
        ),
    }
}
