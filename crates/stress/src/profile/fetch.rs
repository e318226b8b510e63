//! Profiles from web servers.

use std::{error::Error as _, sync::Arc, time::Duration};

use ureq::{
    Agent, Error,
    config::Config,
    http::Uri,
    tls::{Certificate, RootCerts, TlsConfig},
};

/// Time limit for everything: resolving the host, redirections and the body.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time limit for connecting to a host.
const CONNECT: Duration = Duration::from_secs(10);
/// Size limit in bytes. Profiles have some kilobytes; anything larger is a page that was not meant.
const LARGEST: u64 = 1 << 20;

/// Whether a place is on a web server, not a file.
pub(super) fn is_web(place: &str) -> bool {
    let scheme = |name: &str| place.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    scheme("http://") || scheme("https://")
}

/// The text behind a URI. `https` servers are verified with this machine's root certificates, or those that
/// `SSL_CERT_FILE` and `SSL_CERT_DIR` name. `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` are respected; this
/// machine itself is accessed without a proxy.
///
/// # Errors
/// What went wrong, and what to do about it.
pub(super) fn fetch(uri: &str) -> Result<String, String> {
    let parsed: Uri = uri.parse().map_err(|error| format!("is no URI: {error}; write https://host/path.yaml"))?;
    let tls = parsed.scheme_str() == Some("https");
    let agent = agent(tls, is_this_machine(&parsed))?;
    let said = |error: Error| format!("cannot be fetched: {}", explained(&error));
    let mut answer = agent.get(uri).call().map_err(said)?;
    answer.body_mut().with_config().limit(LARGEST).read_to_string().map_err(said)
}

fn agent(tls: bool, here: bool) -> Result<Agent, String> {
    let roots = rustls_native_certs::load_native_certs();
    if tls && roots.certs.is_empty() {
        return Err("cannot be fetched: this machine has no root certificates to check the server with; install the \
                    package ca-certificates, or name a PEM file in SSL_CERT_FILE"
            .to_owned());
    }
    let roots: Vec<Certificate<'static>> =
        roots.certs.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect();
    let tls_config = TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&roots))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    let config = Config::builder()
        .timeout_global(Some(PATIENCE))
        .timeout_connect(Some(CONNECT))
        .user_agent(concat!("brownout/", env!("CARGO_PKG_VERSION")))
        .tls_config(tls_config)
        // What was requested over TLS is never fetched in plain text, wherever the server redirects.
        .https_only(tls);
    Ok(if here { config.proxy(None) } else { config }.build().new_agent())
}

fn is_this_machine(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// With what to do about it.
fn explained(error: &Error) -> String {
    let remedy = match error {
        Error::StatusCode(401 | 403) => "the server wants to know who asks; download it, and name the file",
        Error::StatusCode(_) => "open the address in a browser, and name what it shows",
        Error::BodyExceedsLimit(_) => "a profile has at most 1 MiB; name the file itself, not a page around it",
        Error::HostNotFound => "check the name of the host",
        Error::Timeout(_) => "the server is slow or out of reach; download it, and name the file",
        Error::RequireHttpsOnly(_) => "the server leads from https to http; name the address that it leads to",
        Error::Tls(_) | Error::Rustls(_) => "name a PEM file with the server's root certificate in SSL_CERT_FILE",
        _ => "check the address, or download it and name the file",
    };
    // Some errors only name their cause in their source.
    let cause = error.source().map(|cause| format!(" ({cause})")).unwrap_or_default();
    match error {
        Error::BodyExceedsLimit(_) => format!("it is larger than {LARGEST} bytes; {remedy}"),
        Error::StatusCode(status) => format!("the server answers {status}; {remedy}"),
        other => format!("{other}{cause}; {remedy}"),
    }
}
