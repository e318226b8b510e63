//! Compiles the preloaded object, which the library embeds.
//!
//! It must be a shared object of its own, without the standard library; Cargo has no stable way to embed
//! one package's shared object in another, so that the compiler is called here, as Cargo itself would.

use std::{env, path::PathBuf, process::Command};

const SOURCES: [&str; 6] = [
    "preload/shift.rs",
    "preload/real.rs",
    "preload/set.rs",
    "preload/stamp.rs",
    "preload/wait.rs",
    "src/parameters.rs",
];

fn main() -> Result<(), String> {
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
    }
    let variable = |name: &str| env::var(name).map_err(|error| format!("Cargo sets {name}: {error}"));
    let is = |name: &str, value: &str| Ok::<_, String>(variable(name)? == value);
    if !(is("CARGO_CFG_TARGET_OS", "linux")?
        && is("CARGO_CFG_TARGET_ENV", "gnu")?
        && is("CARGO_CFG_TARGET_POINTER_WIDTH", "64")?)
    {
        return Err(format!(
            "the target {} is not 64-bit Linux with glibc, whose clocks the preloaded object shifts; \
             build for one that is, such as x86_64-unknown-linux-gnu",
            variable("TARGET")?
        ));
    }

    let object = PathBuf::from(variable("OUT_DIR")?).join("libbrownout_clock.so");
    let mut compiler = Command::new(variable("RUSTC")?);
    compiler
        .args(["--edition=2024", "--crate-type=cdylib", "--crate-name=brownout_clock_preload", "--deny=warnings"])
        .args(["-Copt-level=3", "-Ccodegen-units=1", "-Cpanic=abort", "-Cdebug-assertions=no", "-Cstrip=symbols"])
        // A thread that is cancelled while it waits is unwound through our frames.
        .arg("-Cforce-unwind-tables=yes")
        // All is bound when it is loaded: nothing may be looked up inside a signal handler.
        .args(["-Crelro-level=full", "-Clink-arg=-Wl,-z,now", "-Clink-arg=-Wl,--no-undefined"])
        .arg(format!("--target={}", variable("TARGET")?))
        .arg("-o")
        .arg(&object)
        .arg(SOURCES[0]);
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        compiler.arg(format!("-Clinker={linker}"));
    }
    let output = compiler.output().map_err(|error| format!("cannot run {compiler:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{compiler:?} failed:\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    println!("cargo::rustc-env=BROWNOUT_CLOCK_OBJECT={}", object.display());
    Ok(())
}
