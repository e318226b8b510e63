use thiserror::Error;

/// What can go wrong between this program and a Kubernetes.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KubernetesError {
    /// There is no kubeconfig, or none that can be used.
    #[error("no Kubernetes can be reached: {0}; set KUBECONFIG, or log in as you do for kubectl")]
    Config(String),

    /// The API server refused, or could not be reached.
    #[error("cannot {doing}: {source}{remedy}")]
    Api {
        /// What was tried, as a verb phrase.
        doing: String,
        /// What it said.
        source: Box<kube::Error>,
        /// What to do, if that is known; begins with "; ".
        remedy: &'static str,
    },

    /// There is not what an experiment needs.
    #[error("{0}")]
    Lacking(String),

    /// The user wants the end.
    #[error("interrupted while {0}")]
    Interrupted(&'static str),

    /// The machine has no thread, or no memory.
    #[error("cannot {doing}: {source}")]
    Machine {
        /// What was tried, as a verb phrase.
        doing: &'static str,
        /// What the kernel said.
        source: std::io::Error,
    },
}

impl KubernetesError {
    pub(crate) fn api(doing: impl Into<String>, source: kube::Error) -> KubernetesError {
        let remedy = match &source {
            kube::Error::Api(status) if status.code == 403 => {
                "; who runs experiments needs the rights that `brownout manifests` lists"
            }
            kube::Error::Api(status) if status.code == 409 => {
                "; another run goes on in this cluster, or was killed: `brownout destroy --ground kubernetes` removes what it left"
            }
            kube::Error::Api(status) if status.code == 401 => "; log in again as you do for kubectl",
            _ => "",
        };
        KubernetesError::Api { doing: doing.into(), source: Box::new(source), remedy }
    }
}
