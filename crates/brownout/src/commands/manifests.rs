//! `manifests`: what an administrator of a Kubernetes gives to who runs experiments there.

use brownout_lab::machines::manifests::{IMAGE, Subject, agents, rights};

use crate::output;

#[derive(clap::Args)]
pub struct Arguments {
    /// A namespace whose pods experiments are run on. May be given more than once.
    #[arg(long, value_name = "NAMESPACE", default_values_t = ["default".to_owned()])]
    namespace: Vec<String>,
    /// The user who runs experiments.
    #[arg(long, value_name = "NAME", required_unless_present_any = ["group", "agents"])]
    user: Option<String>,
    /// The group whose members run experiments.
    #[arg(long, value_name = "NAME", conflicts_with = "user")]
    group: Option<String>,
    /// Print the agents instead, as runs make them: made by hand, they stay.
    #[arg(long, conflicts_with_all = ["user", "group"])]
    agents: bool,
    /// The image of this program, as nodes can have it.
    #[arg(long, value_name = "IMAGE", default_value = IMAGE, requires = "agents")]
    image: String,
}

pub fn manifests(arguments: &Arguments) -> u8 {
    let subject = match (&arguments.user, &arguments.group) {
        (Some(name), _) => Some(Subject { kind: "User", name: name.clone() }),
        (None, Some(name)) => Some(Subject { kind: "Group", name: name.clone() }),
        (None, None) => None,
    };
    let text = match subject {
        Some(subject) => rights(&subject, &arguments.namespace),
        None => agents(&arguments.image),
    };
    output::code(output::print(&text), 0)
}
