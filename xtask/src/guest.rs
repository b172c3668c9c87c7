//! Runs tests on Debian's kernel in an emulated machine, because they need kernel features that this machine may lack.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Error, ensure};
use serde_json::Value;

use crate::part::{Input, Part, Skipped};
use crate::tools::{self, Need};

const IS_HERE: bool = cfg!(all(target_os = "linux", target_arch = "x86_64"));
const NEEDS: &[Need] = if IS_HERE {
    &[
        Need::Debian("qemu-system-x86_64", "qemu-system-x86"),
        Need::Debian("busybox", "busybox-static"),
        Need::Debian("cpio", "cpio"),
        Need::Debian("/sbin/depmod", "kmod"),
        Need::Debian("nginx", "nginx"),
    ]
} else {
    &[]
};

const INPUTS: &[Input] = &[Input::Package("ascertain-experiments-networks"), Input::Path("xtask/src/guest.rs")];

pub const PARTS: &[Part] =
    &[Part::slow("TLS by the kernel, in a guest whose kernel has it", NEEDS, INPUTS, kernel_tls)];

/// A Debian package that depends on the newest version of Debian's smallest kernel.
const KERNEL: &str = "linux-image-cloud-amd64";
const TEST: &str = "the_kernel_encrypts";

/// The init program of the guest. The kernel calls /sbin/modprobe to load modules.
const INIT: &str = "#!/bin/busybox sh
/bin/busybox mkdir -p /sbin /proc /dev /tmp /etc /var/log/nginx
/bin/busybox --install -s /sbin
export PATH=/sbin:/bin:/usr/sbin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
ip link set lo up
echo 'root:x:0:0::/:/bin/sh
nobody:x:65534:65534::/:/bin/sh' > /etc/passwd
echo 'root:x:0:
nogroup:x:65534:' > /etc/group
tests --nocapture TEST && echo 'the guest is content'
poweroff -f
";

/// Runs the tests in an emulated machine, not in a virtual one: hypervisors differ in the features that they give to
/// guests.
fn kernel_tls() -> anyhow::Result<()> {
    if !IS_HERE {
        return Err(Error::new(Skipped("the guest needs an x86-64 machine".into())));
    }
    let tests = tests_of("ascertain-experiments-networks")?;
    let folder = tools::new_folder("xtask-guest")?;
    let vmlinuz = kernel(&folder)?;
    let root = format!("{folder}/root");
    let copy = |file: &str| tools::output_of("cp", &["-L", "--parents", file, &root]).map(drop);
    fs::create_dir_all(format!("{root}/bin"))?;
    // The debug information is stripped, because the guest unpacks the program into memory.
    tools::output_of("strip", &["-o", &format!("{root}/bin/tests"), &tests])?;
    let nginx = tools::place_of("nginx").context("nginx is not installed")?;
    let busybox = tools::place_of("busybox").context("busybox is not installed")?;
    tools::output_of("cp", &["-L", &busybox, &format!("{root}/bin/busybox")])?;
    copy(&nginx)?;
    for program in [&tests, &nginx, &busybox] {
        let libraries = tools::capture("ldd", &[program])?.stdout;
        let libraries = String::from_utf8_lossy(&libraries).into_owned();
        libraries.split_whitespace().filter(|word| word.starts_with('/')).try_for_each(copy)?;
    }
    fs::write(format!("{root}/init"), INIT.replace("TEST", TEST))?;
    fs::set_permissions(format!("{root}/init"), fs::Permissions::from_mode(0o755))?;
    let archive = format!("{folder}/archive");
    tools::output_of("sh", &["-c", "cd \"$0\" && find . | cpio --quiet -o -H newc > \"$1\"", &root, &archive])?;
    let machine = ["-accel", "tcg", "-cpu", "max", "-m", "2G", "-smp", "2", "-nographic", "-no-reboot"];
    let boot = ["-kernel", &vmlinuz, "-initrd", &archive, "-append", "console=ttyS0 quiet panic=-1"];
    let output = tools::output_of("timeout", &[&["600", "qemu-system-x86_64"], &machine[..], &boot[..]].concat())?;
    let is_content =
        output.contains("1 passed") && output.contains("the guest is content") && !output.contains("left out:");
    ensure!(is_content, "{TEST} in the guest:\n{output}");
    Ok(())
}

/// Builds the workspace's tests, and returns the path of the test program with the package's unit tests.
fn tests_of(package: &str) -> anyhow::Result<String> {
    tools::build_workspace_tests()?;
    let build = [tools::WORKSPACE_TESTS, &["--quiet", "--no-run", "--message-format", "json"]].concat();
    let output = tools::output_of("cargo", &build)?;
    let messages = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let name = Value::from(package.replace('-', "_"));
    let mut programs =
        messages.filter(|message| message["target"]["name"] == name && message["executable"].is_string());
    let program = programs.next().with_context(|| format!("cargo has built no tests of {package}"))?;
    Ok(program["executable"].as_str().unwrap_or_default().into())
}

/// Unpacks Debian's kernel and its modules for encryption without installing them. Returns the path of the kernel.
fn kernel(folder: &str) -> anyhow::Result<String> {
    let missing = |error: Error| Error::new(Skipped(format!("{KERNEL}: {error:#}")));
    let depends = tools::output_of("apt-cache", &["depends", KERNEL]).map_err(missing)?;
    let package = depends.split_whitespace().find(|word| word.starts_with("linux-image-") && *word != KERNEL);
    let none = || Skipped(format!("apt-cache has no package {KERNEL}, which is a Debian package"));
    let package = package.ok_or_else(|| Error::msg(none()))?;
    tools::output_of("sh", &["-c", "cd \"$0\" && apt-get download -qq \"$1\"", folder, package]).map_err(missing)?;
    // Newer packages contain the modules below /usr.
    let unpack = "cd \"$0\" && dpkg-deb --fsys-tarfile linux-image-*.deb |
        tar -x --wildcards './boot/vmlinuz*' './*lib/modules/*/modules.*' './*lib/modules/*/kernel/net/tls' \
            './*lib/modules/*/kernel/crypto' './*lib/modules/*/kernel/lib/crypto' \
            './*lib/modules/*/kernel/arch/x86/crypto' &&
        mkdir -p root/lib && mv \"$(find . -path '*lib/modules' -prune)\" root/lib";
    tools::output_of("sh", &["-c", unpack, folder])?;
    let version = package.trim_start_matches("linux-image-");
    tools::output_of("/sbin/depmod", &["-b", &format!("{folder}/root"), version])?;
    let vmlinuz = format!("{folder}/boot/vmlinuz-{version}");
    ensure!(Path::new(&vmlinuz).exists(), "{package} has no {vmlinuz}");
    Ok(vmlinuz)
}
