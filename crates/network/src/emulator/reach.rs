//! What links are refused, in a network that others have made.

use brownout_base::{HostId, Link};

use crate::{error::NetworkError, impairment::Impairment, way::Way};

/// What the links of a network that others have made cannot do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    /// How it was attached to.
    pub(crate) way: Way,
    /// The host that stands for all that is outside.
    pub(crate) outside: Option<HostId>,
}

impl Reach {
    /// Whether all of these links can do so.
    pub(crate) fn check(&self, links: &[Link], impairment: &Impairment) -> Result<(), NetworkError> {
        let refused = |reason| Err(NetworkError::Unable { way: self.way, reason });
        if let Some(reason) = self.way.refuses(impairment) {
            return refused(reason);
        }
        let is_from_outside = links.iter().any(|link| Some(link.from) == self.outside);
        self.way.refuses_outside().filter(|_| is_from_outside).map_or(Ok(()), refused)
    }
}

#[cfg(test)]
mod tests {
    use brownout_units::Delay;

    use super::*;
    use crate::impairment::Chance;

    #[test]
    fn what_a_way_cannot_do_is_refused_with_the_reason_and_all_else_is_not() {
        let twice = Impairment { duplicate: Chance::of("1%".parse().unwrap()), ..Impairment::NONE };
        let small = Impairment { mtu: Some(1_000), ..Impairment::NONE };
        let late = Impairment::delay(Delay::from_ms(1));
        let from = |host: u16| [Link { from: HostId(host), to: HostId(1 - host) }];
        let said = |way, host, impairment: &Impairment| {
            let reach = Reach { way, outside: Some(HostId(1)) };
            reach.check(&from(host), impairment).err().map(|error| error.to_string())
        };
        for (way, host, impairment, reason) in [
            (Way::Forward, 0, twice, None),
            (Way::Forward, 1, small, None),
            (Way::Queue, 0, twice, Some("duplicate")),
            (Way::Queue, 1, small, Some("MTU")),
            (Way::Queue, 1, late, None),
            (Way::Route, 0, twice, None),
            (Way::Route, 0, small, None),
            (Way::Route, 1, late, Some("from outside")),
        ] {
            match (said(way, host, &impairment), reason) {
                (Some(error), Some(reason)) => assert!(error.contains(reason) && error.contains(way.name()), "{error}"),
                (said, reason) => assert_eq!(said.as_deref(), reason, "{way:?}"),
            }
        }
        assert_eq!(Way::ALL[0], Way::Forward, "the best is first");
    }
}
