//! The processor: its name, its instruction sets, its caches, and the hypervisor below this system.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::cpus::parse_list;

/// Arm's server cores: the `CPU implementer` and the `CPU part` in `/proc/cpuinfo`, and the name of the core.
const ARM_CORES: [(&str, &str, &str); 6] = [
    ("0x41", "0xd08", "Arm Cortex-A72"),
    ("0x41", "0xd0c", "Arm Neoverse N1"),
    ("0x41", "0xd40", "Arm Neoverse V1"),
    ("0x41", "0xd49", "Arm Neoverse N2"),
    ("0x41", "0xd4f", "Arm Neoverse V2"),
    ("0xc0", "0xac3", "Ampere-1"),
];

/// Returns the processor's name from `/proc/cpuinfo`.
pub(super) fn model(cpuinfo: &str) -> Option<String> {
    let value = |key| value(cpuinfo, key);
    if let Some(name) = value("model name").filter(|name| !name.is_empty()) {
        return Some(name.to_owned());
    }
    let (implementer, part) = (value("CPU implementer")?, value("CPU part")?);
    let known = ARM_CORES.iter().find(|core| (core.0, core.1) == (implementer, part));
    Some(known.map_or_else(|| format!("Arm implementer {implementer} part {part}"), |core| core.2.to_owned()))
}

/// Returns the hypervisor. The processor reports whether there is one, and the hypervisor reports its name.
#[cfg(target_arch = "x86_64")]
pub(super) fn hypervisor() -> Option<String> {
    use std::arch::x86_64::__cpuid;

    const HYPERVISOR_PRESENT: u32 = 1 << 31;
    const HYPERVISOR_LEAF: u32 = 0x4000_0000;

    #[allow(unused_unsafe, reason = "older compilers want it")]
    // SAFETY: every x86-64 has the instruction.
    let cpuid = |leaf: u32| unsafe { __cpuid(leaf) };
    if cpuid(1).ecx & HYPERVISOR_PRESENT == 0 {
        return None;
    }
    let leaf = cpuid(HYPERVISOR_LEAF);
    let signature: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].map(u32::to_le_bytes).concat();
    Some(hypervisor_name(&String::from_utf8_lossy(&signature)))
}

/// Returns the hypervisor, if the kernel or the firmware reports it.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn hypervisor() -> Option<String> {
    let read = |path| std::fs::read_to_string(path).ok();
    let kind = read("/sys/hypervisor/type").map(|kind| kind.trim().to_owned());
    kind.or_else(|| {
        let product = read("/sys/class/dmi/id/product_name")?;
        let vendor = read("/sys/class/dmi/id/sys_vendor")?;
        virtual_product(vendor.trim(), product.trim())
    })
}

/// Returns the name of the hypervisor, from the vendor and the product that the firmware reports. `None` if these are
/// the vendor and the product of a real machine.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn virtual_product(vendor: &str, product: &str) -> Option<String> {
    let is_metal = product.contains("metal");
    let name = match vendor {
        "QEMU" => "kvm",
        "Amazon EC2" if !is_metal => "amazon",
        "Google" => "google",
        "Microsoft Corporation" if product == "Virtual Machine" => "hyperv",
        "VMware, Inc." => "vmware",
        "Apple Inc." if product.contains("Virtual") => "apple",
        _ => return None,
    };
    Some(name.to_owned())
}

/// Returns the usual name of a hypervisor, from the signature that the processor reports.
#[cfg(any(test, target_arch = "x86_64"))]
fn hypervisor_name(signature: &str) -> String {
    let signature = signature.trim_end_matches('\0');
    let name = match signature {
        "KVMKVMKVM" | "Linux KVM Hv" => "kvm",
        "Microsoft Hv" => "hyperv",
        "VMwareVMware" => "vmware",
        "XenVMMXenVMM" => "xen",
        "TCGTCGTCGTCG" => "qemu",
        "bhyve bhyve " => "bhyve",
        "VBoxVBoxVBox" => "virtualbox",
        "VirtualApple" => "rosetta",
        "" => "unknown",
        other => other,
    };
    name.to_owned()
}

/// Returns the instruction sets that can be used: the processor has them, and the kernel enables them.
#[cfg(target_arch = "x86_64")]
pub(crate) fn features() -> Vec<String> {
    macro_rules! detected {
        ($($name:tt),*) => {
            [$(($name, is_x86_feature_detected!($name))),*]
        };
    }
    names(&detected![
        "sse2",
        "sse4.2",
        "popcnt",
        "avx",
        "avx2",
        "fma",
        "bmi1",
        "bmi2",
        "lzcnt",
        "avx512f",
        "avx512dq",
        "avx512cd",
        "avx512bw",
        "avx512vl",
        "avx512ifma",
        "avx512vbmi"
    ])
}

/// Returns the instruction sets that can be used: the processor has them, and the kernel enables them.
#[cfg(target_arch = "aarch64")]
pub(crate) fn features() -> Vec<String> {
    use std::arch::is_aarch64_feature_detected;

    macro_rules! detected {
        ($($name:tt),*) => {
            [$(($name, is_aarch64_feature_detected!($name))),*]
        };
    }
    names(&detected!["neon", "lse", "crc", "aes", "sha2", "dotprod", "fp16", "sve", "sve2"])
}

/// Returns an empty list: the instruction sets of other processors are not detected.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn features() -> Vec<String> {
    Vec::new()
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn names(features: &[(&str, bool)]) -> Vec<String> {
    features.iter().filter(|(_, is_there)| *is_there).map(|(name, _)| (*name).to_owned()).collect()
}

/// Returns the value of the first line `key : value` that has this key; `None` if there is no such line.
fn value<'a>(cpuinfo: &'a str, key: &str) -> Option<&'a str> {
    let fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    fields.map(|(name, value)| (name.trim(), value.trim())).find(|field| field.0 == key).map(|field| field.1)
}

/// One cache of a CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// The cache's level: 1 is the closest to the core.
    pub level: u8,
    /// The kind of the data in the cache: `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// The capacity of the cache, in bytes.
    pub size_bytes: u64,
    /// The number of CPUs that share the cache.
    pub shared_by: usize,
}

/// Returns the caches in the folder of a CPU, by level; an empty list if there is no such folder.
pub(super) fn caches(folder: &Path) -> Vec<Cache> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_cache = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("index");
    let mut caches: Vec<Cache> = entries.filter(is_cache).filter_map(|entry| cache(&entry.path())).collect();
    caches.sort_unstable_by(|a, b| (a.level, &a.kind).cmp(&(b.level, &b.kind)));
    caches
}

fn cache(folder: &Path) -> Option<Cache> {
    let read = |name| fs::read_to_string(folder.join(name)).ok();
    Some(Cache {
        level: read("level")?.trim().parse().ok()?,
        kind: read("type")?.trim().to_owned(),
        size_bytes: size_bytes(read("size")?.trim())?,
        shared_by: parse_list(&read("shared_cpu_list")?)?.into_iter().map(Iterator::count).sum(),
    })
}

/// Parses a size such as `48K`, `32M` or a plain number into bytes.
fn size_bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        b'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cpu_models() {
        let amd = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t\t: 2\nmodel name\t: AMD EPYC 9R14\n";
        assert_eq!(model(amd).as_deref(), Some("AMD EPYC 9R14"));
        let graviton = "processor\t: 0\nBogoMIPS\t: 2100.00\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n";
        assert_eq!(model(graviton).as_deref(), Some("Arm Neoverse V1"));
        let other = "CPU implementer\t: 0x61\nCPU part\t: 0x022\n";
        assert_eq!(model(other).as_deref(), Some("Arm implementer 0x61 part 0x022"));
        assert_eq!(model(""), None);
    }

    #[test]
    fn names_of_hypervisors() {
        assert_eq!(hypervisor_name("KVMKVMKVM\0\0\0"), "kvm");
        assert_eq!(hypervisor_name("Jailhouse\0\0\0"), "Jailhouse");
        assert_eq!(hypervisor_name("\0\0\0"), "unknown");
        assert_eq!(virtual_product("Amazon EC2", "c7g.large").as_deref(), Some("amazon"));
        assert_eq!(virtual_product("Amazon EC2", "c7g.metal"), None);
        assert_eq!(virtual_product("Dell Inc.", "PowerEdge"), None);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn every_x86_64_has_sse2() {
        assert!(features().contains(&"sse2".to_owned()));
    }

    #[test]
    fn cache_sizes() {
        assert_eq!(size_bytes("48K"), Some(49_152));
        assert_eq!(size_bytes("32M"), Some(33_554_432));
        assert_eq!(size_bytes("512"), Some(512));
        for wrong in ["", "K", "x", "99999999999999999999K"] {
            assert_eq!(size_bytes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_folder_of_the_kernels() {
        let folder = tempfile::tempdir().unwrap();
        let write = |index: &str, fields: [&str; 4]| {
            let path = folder.path().join(index);
            fs::create_dir(&path).unwrap();
            for (name, text) in ["level", "type", "size", "shared_cpu_list"].iter().zip(fields) {
                fs::write(path.join(name), format!("{text}\n")).unwrap();
            }
        };
        write("index3", ["3", "Unified", "32768K", "0-7"]);
        write("index1", ["1", "Instruction", "32K", "0,4"]);
        write("index0", ["1", "Data", "48K", "0,4"]);
        write("index9", ["9", "Unified", "?", "0"]);
        let cache =
            |level, kind: &str, size_bytes, shared_by| Cache { level, kind: kind.to_owned(), size_bytes, shared_by };
        let expected =
            [cache(1, "Data", 48 << 10, 2), cache(1, "Instruction", 32 << 10, 2), cache(3, "Unified", 32 << 20, 8)];
        assert_eq!(caches(folder.path()), expected);
        assert_eq!(caches(&folder.path().join("nothing")), []);
    }
}
