use super::*;

fn statements(version: Version) -> Statements {
    let mut statements = Statements::new(version);
    statements.keep(0, &[0xAA, 0xBB], &[0xCC]);
    statements.keep(2, &[0xDD], &[0xEE]);
    statements
}

fn composed(version: Version, write: impl FnOnce(Request<'_>)) -> Result<Vec<u8>, RequestError> {
    let mut out = vec![0xEE; 3];
    let result = compose(&mut out, 258, &statements(version), write);
    assert_eq!(out[..3], [0xEE; 3], "what stood in the buffer before is left alone");
    assert_eq!(result.is_ok(), out.len() > 3, "after an error nothing is sent");
    result.map(|()| out.split_off(3))
}

const ALL: Parameters<'static> = Parameters {
    consistency: Consistency::LocalQuorum,
    serial_consistency: Some(SerialConsistency::LocalSerial),
    page_size: Some(5000),
    paging_state: Some(&[7, 8]),
    timestamp_us: Some(1_000_000),
    skip_metadata: true,
};

#[test]
fn execute_in_version_4_is_as_the_specification_says() {
    let write = |request: Request<'_>| {
        request.execute(0, &ALL).value(&[1]).null().unset().value_with(|out| out.extend_from_slice(b"abc"));
    };
    #[rustfmt::skip]
    let expected = [
        0x04, 0x00, 0x01, 0x02, 0x0A,             // request v4, no flags, stream 258, EXECUTE
        0x00, 0x00, 0x00, 0x34,                   // body of 52 bytes
        0x00, 0x02, 0xAA, 0xBB,                   // id, [short bytes]
        0x00, 0x06,                               // LOCAL_QUORUM
        0x3F,                                     // values, skip metadata, page size and state, serial, timestamp
        0x00, 0x04,                               // four values
        0x00, 0x00, 0x00, 0x01, 0x01,
        0xFF, 0xFF, 0xFF, 0xFF,                   // null
        0xFF, 0xFF, 0xFF, 0xFE,                   // not set
        0x00, 0x00, 0x00, 0x03, b'a', b'b', b'c',
        0x00, 0x00, 0x13, 0x88,                   // page size 5,000
        0x00, 0x00, 0x00, 0x02, 0x07, 0x08,       // paging state
        0x00, 0x09,                               // LOCAL_SERIAL
        0x00, 0x00, 0x00, 0x00, 0x00, 0x0F, 0x42, 0x40,
    ];
    let mut expected = expected.to_vec();
    expected[8] = (expected.len() - HEADER) as u8;
    assert_eq!(composed(Version::V4, write), Ok(expected));
}

#[test]
fn execute_in_version_5_has_the_metadata_id_and_wide_flags() {
    #[rustfmt::skip]
    let expected = vec![
        0x05, 0x00, 0x01, 0x02, 0x0A,             // request v5, no flags, stream 258, EXECUTE
        0x00, 0x00, 0x00, 0x15,                   // body of 21 bytes
        0x00, 0x02, 0xAA, 0xBB,                   // id, [short bytes]
        0x00, 0x01, 0xCC,                         // id of the result's metadata
        0x00, 0x01,                               // ONE
        0x00, 0x00, 0x00, 0x03,                   // values, skip metadata
        0x00, 0x01,                               // one value
        0x00, 0x00, 0x00, 0x02, 0x01, 0x02,
    ];
    let parameters = Parameters { skip_metadata: true, ..Parameters::new(Consistency::One) };
    let request = composed(Version::V5, |request| {
        request.execute(0, &parameters).value(&[1, 2]);
    });
    assert_eq!(request, Ok(expected));
}

#[test]
fn a_query_without_values_has_no_flag_for_them() {
    #[rustfmt::skip]
    let expected = vec![
        0x04, 0x00, 0x01, 0x02, 0x07,             // request v4, no flags, stream 258, QUERY
        0x00, 0x00, 0x00, 0x0D,                   // body of 13 bytes
        0x00, 0x00, 0x00, 0x02, b'U', b'!',       // [long string]
        0x00, 0x04,                               // QUORUM
        0x04,                                     // page size
        0x00, 0x00, 0x00, 0x64,
    ];
    let parameters = Parameters { page_size: Some(100), ..Parameters::new(Consistency::Quorum) };
    assert_eq!(composed(Version::V4, |request| drop(request.query("U!", &parameters))), Ok(expected));
}

#[test]
fn batches_are_as_the_specification_says() {
    #[rustfmt::skip]
    let body = [
        0x01,                                     // unlogged
        0x00, 0x03,                               // three statements
        0x01, 0x00, 0x02, 0xAA, 0xBB, 0x00, 0x01, // prepared, its id, one value
        0x00, 0x00, 0x00, 0x01, 0x05,
        0x00, 0x00, 0x00, 0x00, 0x01, b'T', 0x00, 0x00, // text, no value
        0x01, 0x00, 0x01, 0xDD, 0x00, 0x01,       // prepared, its id, one value
        0xFF, 0xFF, 0xFF, 0xFF,                   // null
        0x00, 0x06,                               // LOCAL_QUORUM
    ];
    let tail = [0x00, 0x09, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0F, 0x42, 0x40]; // LOCAL_SERIAL, timestamp
    for (version, flags) in [(Version::V4, &[0x30][..]), (Version::V5, &[0, 0, 0, 0x30])] {
        let expected = [&body[..], flags, &tail].concat();
        let header = [version as u8, 0, 0x01, 0x02, 0x0D, 0, 0, 0, expected.len() as u8];
        let request = composed(version, |request| {
            let mut batch = request.batch(BatchKind::Unlogged, &ALL);
            batch.add(0).value(&[5]);
            batch.add_query("T");
            batch.add(2).null();
            assert_eq!(batch.statements(), 3);
        });
        assert_eq!(request, Ok([&header[..], &expected].concat()), "{version:?}");
    }
}

#[test]
fn what_cannot_be_counted_is_refused() {
    let parameters = Parameters::new(Consistency::One);
    let values = |count: usize| {
        composed(Version::V4, |request| {
            let mut values = request.execute(0, &parameters);
            for _ in 0..count {
                values.null();
            }
        })
    };
    assert!(values(65_535).is_ok());
    assert_eq!(values(65_536), Err(RequestError::TooManyValues));
    let statements = |count: usize| {
        composed(Version::V4, |request| {
            let mut batch = request.batch(BatchKind::Logged, &parameters);
            (0..count).for_each(|_| drop(batch.add(0)));
        })
    };
    assert!(statements(65_535).is_ok());
    assert_eq!(statements(65_536), Err(RequestError::TooManyStatements));
}

#[test]
fn what_is_not_prepared_or_not_written_is_refused() {
    let parameters = Parameters::new(Consistency::One);
    let unknown = |number| composed(Version::V4, |request| drop(request.execute(number, &parameters)));
    assert_eq!(unknown(1), Err(RequestError::UnknownStatement(1)), "a gap in the list");
    assert_eq!(unknown(3), Err(RequestError::UnknownStatement(3)), "beyond the list");
    let batch = composed(Version::V4, |request| {
        request.batch(BatchKind::Logged, &parameters).add(7).null();
    });
    assert_eq!(batch, Err(RequestError::UnknownStatement(7)));
    assert_eq!(composed(Version::V4, |_| ()), Err(RequestError::Nothing));
}

#[test]
fn a_request_too_long_for_a_frame_is_refused() {
    let parameters = Parameters::new(Consistency::One);
    let long = composed(Version::V4, |request| {
        request.execute(0, &parameters).value_with(|out| out.resize(out.len() + LONGEST_BODY, 0));
    });
    assert_eq!(long, Err(RequestError::TooLong));
}
