//! Answers written by hand after Docker's API documentation (1.41) and podman's (4.3), shortened to what is read and
//! some that is not.

use super::*;

/// A service of a Compose project, Docker 20.10.
fn of_docker() -> Value {
    json!({
        "Id": "8091f84306d0aa0b8091f84306d0aa0b8091f84306d0aa0b8091f84306d0aa0b",
        "Created": "2026-11-24T10:00:00.1Z",
        "Name": "/shop_cassandra_2",
        "RestartCount": 0,
        "State": {
            "Status": "running", "Running": true, "Paused": false, "Restarting": false, "OOMKilled": false,
            "Pid": 4711, "ExitCode": 0, "StartedAt": "2026-11-24T10:00:01.5Z", "FinishedAt": "0001-01-01T00:00:00Z"
        },
        "Config": {
            "Image": "cassandra:5.0",
            "StopSignal": "SIGQUIT",
            "Labels": {
                "com.docker.compose.project": "shop", "com.docker.compose.service": "cassandra",
                "com.docker.compose.container-number": "2", "com.docker.compose.oneoff": "False"
            }
        },
        "HostConfig": { "NetworkMode": "shop_default", "AutoRemove": false },
        "NetworkSettings": {
            "SandboxKey": "/var/run/docker/netns/0a1b2c3d4e5f", "IPAddress": "",
            "Networks": {
                "shop_default": {
                    "Aliases": ["8091f84306d0", "cassandra"], "Gateway": "172.18.0.1", "IPAddress": "172.18.0.3",
                    "IPPrefixLen": 16, "IPv6Gateway": "", "GlobalIPv6Address": "fd00::3",
                    "MacAddress": "02:42:ac:12:00:03"
                }
            }
        }
    })
}

fn told(value: Value) -> Told {
    let inspected: Inspected = serde_json::from_value(value).unwrap();
    inspected.told(Path::new("/run/docker.sock"), Runtime::Docker, "Docker 20.10.24")
}

#[test]
fn a_service_of_compose_is_read_from_docker() {
    let told = told(of_docker());
    let of = |text: &str| Some(text.to_owned());
    assert_eq!((told.name.as_str(), told.pid, told.is_paused), ("shop_cassandra_2", Some(4711), false));
    assert_eq!((told.project, told.service, told.number), (of("shop"), of("cassandra"), Some(2)));
    assert_eq!((told.image.as_str(), told.started.as_str()), ("cassandra:5.0", "2026-11-24T10:00:01.5Z"));
    assert_eq!(told.namespace, Some("/var/run/docker/netns/0a1b2c3d4e5f".into()));
    assert_eq!((told.mode, told.is_removed, told.stop_signal), (Mode::Own, false, Some(libc::SIGQUIT)));
    let expected = Attachment {
        network: "shop_default".into(),
        addresses: vec!["172.18.0.3".parse().unwrap(), "fd00::3".parse().unwrap()],
        mac: of("02:42:ac:12:00:03"),
        gateways: vec!["172.18.0.1".parse().unwrap()],
    };
    assert_eq!(told.networks, [expected]);
}

#[test]
fn a_container_of_podman_is_read_with_its_nulls() {
    let told = told(json!({
        "Id": "1d5eb3655ca7", "Name": "/db", "Image": "0123",
        "State": { "Status": "paused", "Paused": true, "Pid": 99, "StartedAt": "2026-11-24T10:00:01+01:00" },
        "Config": { "Image": "docker.io/library/cassandra:5.0", "Labels": null, "StopSignal": "15" },
        "HostConfig": { "NetworkMode": "bridge", "AutoRemove": true },
        "NetworkSettings": {
            "SandboxKey": "/run/netns/netns-0a1b",
            "Networks": {
                "podman": { "IPAddress": "10.88.0.2", "Gateway": "10.88.0.1", "MacAddress": "", "DriverOpts": null },
                "x": null
            }
        }
    }));
    assert_eq!((told.name.as_str(), told.pid, told.is_paused, told.is_removed), ("db", Some(99), true, true));
    assert_eq!((told.project, told.service, told.stop_signal), (None, None, Some(libc::SIGTERM)));
    assert_eq!(told.networks.len(), 1);
    assert_eq!((&told.networks[0].mac, told.networks[0].addresses.len()), (&None, 1));
}

#[test]
fn whose_network_it_has_is_read_from_its_mode() {
    let mode = |mode: &str| {
        let mut value = of_docker();
        value["HostConfig"]["NetworkMode"] = mode.into();
        told(value).mode
    };
    assert_eq!(mode("host"), Mode::Host);
    assert_eq!(mode("container:8091f84306d0"), Mode::Of("8091f84306d0".into()));
    for own in ["none", "bridge", "slirp4netns:port_handler=rootlesskit"] {
        assert_eq!(mode(own), Mode::Own, "{own}");
    }
}

#[test]
fn one_that_does_not_run_has_no_process() {
    let mut value = of_docker();
    value["State"] = json!({ "Status": "exited", "Pid": 0, "ExitCode": 137 });
    value["NetworkSettings"]["SandboxKey"] = "".into();
    let told = told(value);
    assert_eq!((told.pid, told.state.as_str(), told.namespace.as_ref()), (None, "exited", None));
    assert!(!told.is_there());
}

#[test]
fn those_that_run_are_listed_without_those_of_a_single_command() {
    let listed = |id: &str, state: &str, one_off: &str| {
        let value = json!({
            "Id": id, "Names": [format!("/shop-{id}")], "Image": "x", "State": state, "Labels": { ONE_OFF: one_off }
        });
        serde_json::from_value::<Listed>(value).unwrap()
    };
    let all = [
        listed("a", "running", "False"),
        listed("b", "running", "True"),
        listed("c", "exited", "False"),
        listed("d", "paused", ""),
    ];
    assert_eq!(running(&all), Ok(vec!["a".to_owned(), "d".to_owned()]));
    assert_eq!(running(&all[2..3]), Err("shop-c (exited)".to_owned()));
    assert_eq!(running(&[]), Ok(Vec::new()));
    assert_eq!(running(&all[1..2]), Ok(Vec::new()), "nobody's service");
}

#[test]
fn the_runtime_says_who_it_is() {
    let names = |value: Value| serde_json::from_value::<Version>(value).unwrap().names();
    let docker = json!({
        "Platform": { "Name": "" }, "Components": [{ "Name": "Engine", "Version": "20.10.24+dfsg1" }],
        "Version": "20.10.24+dfsg1", "ApiVersion": "1.41"
    });
    assert_eq!(names(docker), (Runtime::Docker, "Docker 20.10.24+dfsg1".into()));
    let podman = json!({ "Components": [{ "Name": "Podman Engine", "Version": "4.3.1" }], "Version": "4.3.1" });
    assert_eq!(names(podman), (Runtime::Podman, "podman 4.3.1".into()));
}
