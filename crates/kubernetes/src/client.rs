//! A connection to an API server.

use std::future::Future;

use kube::{Client, Config};
use tokio::runtime::{Handle, Runtime};

use crate::KubernetesError;

/// The API server of a kubeconfig, and the threads that speak to it.
pub struct Kubernetes {
    pub(crate) client: Client,
    runtime: Runtime,
    context: String,
}

impl Kubernetes {
    /// The one that `kubectl` would speak to: of `KUBECONFIG`, `~/.kube/config`, or of the pod that this runs in.
    ///
    /// # Errors
    /// There is none, or its file cannot be used.
    pub fn connect() -> Result<Kubernetes, KubernetesError> {
        // Of the two that are built, this is the one that encrypts here. Whoever has said so before is as right.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let failed = |source| KubernetesError::Machine { doing: "start threads that speak to Kubernetes", source };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("kubernetes")
            .enable_all()
            .build()
            .map_err(failed)?;
        let config = runtime.block_on(Config::infer()).map_err(|error| KubernetesError::Config(error.to_string()))?;
        let context = config.cluster_url.to_string();
        let client = {
            let _entered = runtime.enter();
            Client::try_from(config).map_err(|error| KubernetesError::Config(error.to_string()))?
        };
        Ok(Kubernetes { client, runtime, context })
    }

    /// Where the API server is.
    pub fn context(&self) -> &str {
        &self.context
    }

    /// Waits for an answer; `doing` says for what, as a verb phrase.
    pub(crate) fn wait<T>(
        &self,
        doing: impl Into<String>,
        answer: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, KubernetesError> {
        self.runtime.block_on(answer).map_err(|error| KubernetesError::api(doing, error))
    }

    pub(crate) fn handle(&self) -> &Handle {
        self.runtime.handle()
    }
}
