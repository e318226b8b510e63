//! A connection to an API server.

use std::{future::Future, time::Duration};

use kube::{Client, Config};
use tokio::runtime::{Handle, Runtime};

use crate::KubernetesError;

/// An API server that takes longer is not there.
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);

/// The API server of a kubeconfig, and the threads that speak to it.
pub struct Kubernetes {
    pub(crate) client: Client,
    runtime: Runtime,
}

impl Kubernetes {
    /// The one that `kubectl` would speak to: of `KUBECONFIG`, `~/.kube/config`, or of the pod that this runs in.
    ///
    /// # Errors
    /// There is none, or its file cannot be used.
    pub fn connect() -> Result<Kubernetes, KubernetesError> {
        // Of the two that are built, this is the one that encrypts here. Whoever has said so before is as right.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Kubernetes::of(async {
            let config = Config::infer().await.map_err(|error| KubernetesError::Config(error.to_string()))?;
            Client::try_from(config).map_err(|error| KubernetesError::Config(error.to_string()))
        })
    }

    /// That to which this client speaks.
    pub(crate) fn of(
        client: impl Future<Output = Result<Client, KubernetesError>>,
    ) -> Result<Kubernetes, KubernetesError> {
        let failed = |source| KubernetesError::Machine { doing: "start threads that speak to Kubernetes", source };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("kubernetes")
            .enable_all()
            .build()
            .map_err(failed)?;
        let client = runtime.block_on(client)?;
        Ok(Kubernetes { client, runtime })
    }

    /// Waits for an answer; `doing` says for what, as a verb phrase.
    pub(crate) fn wait<T>(
        &self,
        doing: impl Into<String>,
        answer: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, KubernetesError> {
        let answered = self.runtime.block_on(async { tokio::time::timeout(ANSWERS_WITHIN, answer).await });
        match answered {
            Ok(answer) => answer.map_err(|error| KubernetesError::api(doing, error)),
            Err(_) => Err(KubernetesError::Lacking(format!(
                "cannot {}: the API server has not answered within {} s",
                doing.into(),
                ANSWERS_WITHIN.as_secs()
            ))),
        }
    }

    pub(crate) fn handle(&self) -> &Handle {
        self.runtime.handle()
    }
}
