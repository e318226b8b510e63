//! TCP through random loss: its goodput is what theory says of single packets, not of GSO packets.

// Helpers outside of a #[track_caller]
fn assert_mathis(asked: &str, loss: f64, family: Family) {
    until_quiet(asked, 15.0, |_| {
        let [bundled, single] = [true, false].map(|gso| measure(asked, loss, family, gso));
        // Loss of whole GSO packets would nearly double it at 0.1 %.
        let is_alike = (bundled / single - 1.0).abs() < 0.2;
        match is_alike && [bundled, single].iter().all(|constant| MATHIS.contains(constant)) {
            true => Ok(()),
            false => Err(format!("C of {bundled} bundled, {single} packet by packet")),
        }
    });
}

#[test]
fn reno_gets_through_random_loss_what_mathis_says_and_no_more_with_gso_packets() {
    assert_mathis("0.1%", 0.001, Family::V6);
}

#[test]
#[ignore = "the same at a loss at which few packets are bundled: make test-long"]
fn reno_gets_through_a_loss_of_one_per_cent_what_mathis_says() {
    assert_mathis("1%", 0.01, Family::V4);
}
