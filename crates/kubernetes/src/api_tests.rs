//! What is asked of an API server, and what is made of its answers: by one in this process, which answers as a real one does. Who asks
//! has the rights that this program's own manifest gives, and no others.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use http::{Method, Request, Response, StatusCode};
use k8s_openapi::api::rbac::v1::{PolicyRule, Role};
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use crate::{Kubernetes, KubernetesError, PodSelection, agents::parsed, manifests};

/// One that answers so, and what it was asked.
struct Server {
    kubernetes: Kubernetes,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn answering(answer: impl Fn(&Method, &str) -> (StatusCode, Value) + Send + Sync + 'static) -> Server {
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let (answer, written, rules) = (Arc::new(answer), Arc::clone(&asked), rules());
        let service = service_fn(move |request: Request<Body>| {
            let (method, path) = (request.method().clone(), request.uri().path().to_owned());
            written.lock().unwrap().push(format!("{method} {}", request.uri()));
            let (status, body) = match is_allowed(&rules, &method, &path) {
                true => answer(&method, &path),
                false => refused(403, &format!("Forbidden: {method} {path}")),
            };
            let body = Body::from(serde_json::to_vec(&body).unwrap());
            async move { Ok::<_, Infallible>(Response::builder().status(status).body(body).unwrap()) }
        });
        let kubernetes = Kubernetes::of(async { Ok(kube::Client::new(service, "default")) }).unwrap();
        Server { kubernetes, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Namespace and rules of each role that somebody has who runs experiments on pods of the namespace `db`.
fn rules() -> Vec<(String, PolicyRule)> {
    let text = manifests::rights(&manifests::Subject { kind: "User", name: "jane".to_owned() }, &["db".to_owned()]);
    let roles = text.split("---\n").filter(|document| document.contains("kind: Role\n"));
    let rules = |text: &str| {
        let Role { metadata, rules } = parsed(text).unwrap();
        let namespace = metadata.namespace.unwrap();
        rules.unwrap().into_iter().map(move |rule| (namespace.clone(), rule)).collect::<Vec<_>>()
    };
    roles.flat_map(rules).collect()
}

/// Whether these allow a request, as RBAC reads them.
fn is_allowed(rules: &[(String, PolicyRule)], method: &Method, path: &str) -> bool {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (group, rest) = match parts[..] {
        ["api", _, ref rest @ ..] => ("", rest),
        ["apis", group, _, ref rest @ ..] => (group, rest),
        _ => return false,
    };
    let (namespace, resource, name) = match *rest {
        ["namespaces", namespace, resource] => (namespace, resource.to_owned(), None),
        ["namespaces", namespace, resource, name] => (namespace, resource.to_owned(), Some(name)),
        ["namespaces", namespace, resource, name, part] => (namespace, format!("{resource}/{part}"), Some(name)),
        _ => return false,
    };
    let verb = match (method.as_str(), name) {
        ("GET", None) => "list",
        ("GET", Some(_)) => "get",
        ("POST", _) => "create",
        ("DELETE", Some(_)) => "delete",
        ("DELETE", None) => "deletecollection",
        _ => return false,
    };
    let has = |all: &[String], one: &str| all.iter().any(|known| known == one);
    rules.iter().any(|(of, rule)| {
        let groups = rule.api_groups.as_deref().unwrap_or_default();
        let resources = rule.resources.as_deref().unwrap_or_default();
        of == namespace && has(groups, group) && has(resources, &resource) && has(&rule.verbs, verb)
    })
}

#[test]
fn the_rights_that_people_are_given_allow_what_is_asked_and_nothing_beside_it() {
    let rules = rules();
    let allowed = |method: Method, path: &str| is_allowed(&rules, &method, path);
    assert!(allowed(Method::GET, "/api/v1/namespaces/db/pods"));
    assert!(allowed(Method::DELETE, "/apis/apps/v1/namespaces/brownout/daemonsets/agent"));
    assert!(allowed(Method::GET, "/api/v1/namespaces/brownout/pods/agent-x/exec"));
    assert!(!allowed(Method::DELETE, "/api/v1/namespaces/db/pods/db-0"));
    assert!(
        !allowed(Method::GET, "/api/v1/namespaces/db/pods/db-0/exec"),
        "in pods of the database nothing is done by commands"
    );
    assert!(!allowed(Method::GET, "/api/v1/namespaces/shop/pods"));
    assert!(!allowed(Method::GET, "/api/v1/pods") && !allowed(Method::GET, "/api/v1/namespaces/db/secrets"));
}

fn list(kind: &str, items: &[Value]) -> (StatusCode, Value) {
    (StatusCode::OK, json!({ "kind": kind, "apiVersion": "v1", "metadata": {}, "items": items }))
}

fn refused(code: u16, reason: &str) -> (StatusCode, Value) {
    let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": format!("it is {reason}"),
        "reason": reason, "code": code });
    (StatusCode::from_u16(code).unwrap(), status)
}

fn pod(name: &str, node: &str, app: &str) -> Value {
    json!({
        "metadata": { "name": name, "namespace": "db", "labels": { "app": app } },
        "spec": { "nodeName": node, "containers": [{ "name": "db" }] },
        "status": {
            "phase": "Running",
            "conditions": [{ "type": "Ready", "status": "True" }],
            "containerStatuses": [{
                "name": "db", "containerID": format!("containerd://id-of-{name}"), "image": "x", "imageID": "x", "ready": true,
                "restartCount": 0
            }],
        },
    })
}

fn selection() -> PodSelection {
    PodSelection { namespace: "db".to_owned(), selector: "app=db".to_owned() }
}

#[test]
fn pods_are_listed_by_their_labels_and_ordered() {
    let server = Server::answering(|_, _| list("PodList", &[pod("db-10", "node1", "db"), pod("db-9", "node2", "db")]));
    let pods = server.kubernetes.pods(&selection()).unwrap();
    let known: Vec<_> = pods.iter().map(|pod| (&*pod.name, &*pod.node, &*pod.containers[0].id)).collect();
    assert_eq!(known, [("db-9", "node2", "id-of-db-9"), ("db-10", "node1", "id-of-db-10")]);
    assert_eq!(server.asked(), ["GET /api/v1/namespaces/db/pods?&labelSelector=app%3Ddb"]);

    let none = Server::answering(|_, _| list("PodList", &[])).kubernetes.pods(&selection()).unwrap_err().to_string();
    assert!(
        none.contains("no pod with the labels app=db runs in namespace db") && none.contains("--show-labels"),
        "{none}"
    );
}

#[test]
fn a_refusal_says_what_was_tried_and_who_gives_the_right() {
    for (code, reason, remedy) in [(403, "Forbidden", "brownout manifests"), (401, "Unauthorized", "log in again")] {
        let server = Server::answering(move |_, _| refused(code, reason));
        let error = server.kubernetes.pods(&selection()).unwrap_err();
        assert!(matches!(error, KubernetesError::Api { .. }), "{error:?}");
        let told = error.to_string();
        assert!(told.starts_with("cannot list the pods of namespace db: ") && told.contains(remedy), "{told}");
    }
}

#[test]
fn agents_are_made_where_there_are_none_and_left_alone_where_there_are() {
    let made = Arc::new(Mutex::new(false));
    let is_made = Arc::clone(&made);
    let set = || {
        let container = json!({ "name": "agent", "image": "image" });
        json!({
            "metadata": { "name": "agent", "labels": { "brownout-made-by": "run" } },
            "spec": { "selector": {}, "template": { "spec": { "containers": [container] } } },
        })
    };
    let server = Server::answering(move |method, path| {
        let mut made = is_made.lock().unwrap();
        match (method.as_str(), path) {
            ("POST", _) => {
                *made = true;
                (StatusCode::CREATED, set())
            }
            (_, path) if path.ends_with("/daemonsets/agent") && *made => (StatusCode::OK, set()),
            (_, path) if path.ends_with("/daemonsets/agent") => refused(404, "NotFound"),
            _ if *made => list("PodList", &[pod("agent-x", "node1", "brownout-agent")]),
            _ => list("PodList", &[]),
        }
    });
    let nodes = ["node1".to_owned()];
    let go_on = || false;
    assert!(server.kubernetes.make_agents("image", &go_on).unwrap(), "there were none");
    assert!(server.kubernetes.make_agents("image", &go_on).unwrap(), "there were some, of a run");
    server.kubernetes.wait_for_agents(&nodes, &go_on).unwrap();
    let other = server.kubernetes.make_agents("other", &go_on).unwrap_err().to_string();
    assert!(other.contains("agents of the image image, and other is asked for"), "{other}");
    let elsewhere = ["node2".to_owned()];
    let stopped = server.kubernetes.wait_for_agents(&elsewhere, &|| true).unwrap_err().to_string();
    assert_eq!(stopped, "interrupted while agents were to start");
    let posts = server.asked().iter().filter(|asked| asked.starts_with("POST")).count();
    assert_eq!(posts, 1, "{:?}", server.asked());
    assert_eq!(server.kubernetes.agents().unwrap()[0].node, "node1");
}

#[test]
fn what_is_removed_is_told_and_what_is_not_there_is_no_error() {
    let server = Server::answering(|method, path| match (method.as_str(), path) {
        ("DELETE", _) => {
            (StatusCode::OK, json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success" }))
        }
        (_, path) if path.ends_with("/daemonsets") => list(
            "DaemonSetList",
            &[json!({ "metadata": { "name": "agent" }, "spec": { "selector": {}, "template": {} } })],
        ),
        (_, path) if path.ends_with("/jobs") => list("JobList", &[json!({ "metadata": { "name": "load-x" } })]),
        (_, path) if path.ends_with("/services") => list("ServiceList", &[json!({ "metadata": { "name": "db-1" } })]),
        (_, path) if path.ends_with("/statefulsets") => list("StatefulSetList", &[]),
        _ => list("PersistentVolumeClaimList", &[]),
    });
    let (removed, failed) = server.kubernetes.remove_all();
    assert_eq!(removed, ["DaemonSet/agent", "Job/load-x", "Service/db-1"]);
    assert!(failed.is_empty(), "{failed:?}");
    // What may not be removed keeps nothing else from it, and is told.
    let partly = Server::answering(|method, path| match (method.as_str(), path) {
        (_, path) if path.ends_with("/statefulsets") => refused(403, "Forbidden"),
        ("DELETE", _) => {
            (StatusCode::OK, json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success" }))
        }
        (_, path) if path.ends_with("/jobs") => list("JobList", &[json!({ "metadata": { "name": "load-x" } })]),
        _ => list("DaemonSetList", &[]),
    });
    let (removed, failed) = partly.kubernetes.remove_all();
    assert_eq!((removed, failed.len()), (vec!["Job/load-x".to_owned()], 1));
    let deleted: Vec<String> = server.asked().into_iter().filter(|asked| asked.starts_with("DELETE")).collect();
    assert_eq!(deleted.len(), 3, "{deleted:?}");
    assert!(deleted.iter().all(|asked| asked.contains("/namespaces/brownout/")), "{deleted:?}");

    // What goes by itself between the question and the answer.
    let quick = Server::answering(|method, _| match method.as_str() {
        "DELETE" => refused(404, "NotFound"),
        _ => list("JobList", &[json!({ "metadata": { "name": "load-x" } })]),
    });
    assert_eq!(quick.kubernetes.remove_loads("x").unwrap(), ["Job/load-x"]);
    assert!(quick.asked()[0].contains("labelSelector=brownout-run%3Dx"), "{:?}", quick.asked());
}

#[test]
fn a_cluster_of_another_run_is_left_alone_and_told() {
    let server = Server::answering(|_, _| refused(409, "AlreadyExists"));
    let told = server.kubernetes.make_names("db").unwrap_err().to_string();
    assert!(told.starts_with("cannot make the service db: ") && told.contains("another run goes on"), "{told}");
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn what_does_not_run_is_told_with_why_kubernetes_says_it_does_not() {
    let mut waiting = pod("agent-x", "node1", "brownout-agent");
    waiting["status"]["containerStatuses"][0]["state"] =
        json!({ "waiting": { "reason": "ErrImagePull", "message": "no such image" } });
    let server = Server::answering(move |_, _| list("PodList", std::slice::from_ref(&waiting)));
    let look = || Ok(Some("no agent runs on node1".to_owned()));
    let told = server.kubernetes.wait_until_ready("agent", Duration::ZERO, (&|| false, "it was to start"), look);
    let told = told.unwrap_err().to_string();
    assert_eq!(told, "no agent runs on node1 after 0 s: agent-x: ErrImagePull no such image");
    server.kubernetes.wait_until_ready("agent", Duration::ZERO, (&|| true, "it was to start"), || Ok(None)).unwrap();
}

#[test]
fn pods_that_send_operations_are_known_by_their_numbers() {
    let load = |name: &str, run: &str, number: &str| {
        let mut load = pod(name, "node1", "brownout-load");
        load["metadata"]["labels"]["brownout-run"] = json!(run);
        load["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = json!(number);
        load
    };
    let all = [load("load-r-1-b", "r", "1"), load("load-r-0-a", "r", "0"), load("load-x-0-c", "x", "0")];
    let server = Server::answering(move |method, path| match (method.as_str(), path) {
        ("POST", _) => (StatusCode::CREATED, json!({ "metadata": { "name": "load-r" } })),
        (_, path) if path.ends_with("/jobs") => list("JobList", &[]),
        _ => list("PodList", &all),
    });
    let loads = server.kubernetes.loads("r").unwrap();
    assert_eq!(loads, [(0, "load-r-0-a".to_owned()), (1, "load-r-1-b".to_owned())].into());
    server.kubernetes.make_loads("r", "image", 2, &|| false).unwrap();
    let stopped = server.kubernetes.make_loads("r", "image", 3, &|| true).unwrap_err().to_string();
    assert_eq!(stopped, "interrupted while pods that send operations were to start");
}

#[test]
fn events_of_before_are_left_out() {
    let event = |name: &str, time: &str| json!({ "metadata": { "name": name }, "involvedObject": { "kind": "Pod", "name": "db-1" }, "reason": name, "lastTimestamp": time });
    let server = Server::answering(move |_, _| {
        list("EventList", &[event("Late", "2026-01-02T03:04:05Z"), event("Early", "2026-01-02T03:03:00Z")])
    });
    let all = server.kubernetes.happened("db", 1_767_323_044_500).unwrap();
    assert_eq!(all.iter().map(|one| one.reason.as_str()).collect::<Vec<_>>(), ["Late"]);
    assert!(server.asked()[0].contains("fieldSelector=involvedObject.kind%3DPod"), "{:?}", server.asked());
}
