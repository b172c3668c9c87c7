//! Sets up a link between two network namespaces of this process.

use std::io;
use std::time::Duration;

use ascertain_sys::namespace::Namespace;
use ascertain_sys::netlink::{Netlink, VethEnd};
use ascertain_sys::{packet, tun};

use super::emulator::{Device, Emulator};
use super::report::Report;
use super::side::{INTERFACE, Side};
use crate::Error;
use crate::model::Conditions;

/// Size of an Ethernet header, in bytes.
const ETHERNET_BYTES: usize = 14;
/// Hardware address of all virtual Ethernet devices. Since all have the same address, each device accepts all frames
/// that are sent to it, without ARP.
const HARDWARE_ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// The properties of a link. Both directions have the same properties, but lose different segments.
///
/// ```no_run
/// use std::time::Duration;
/// use ascertain_netlab::Link;
///
/// let link = Link { rtt: Duration::from_millis(20), ..Link::default() }.start()?;
/// let listener = link.far().listen((link.far().address(), 80))?;
/// let near = link.near().connect((link.far().address(), 80))?; // after 20 ms
/// let (far, _) = listener.accept()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Round-trip time of the link. Each direction delays packets by half of it.
    pub rtt: Duration,
    /// Rate limit of each direction. It counts whole IP packets. With `None`, the link is as fast as the machine.
    pub rate_bits_per_s: Option<u64>,
    /// Size of the queue in which the packets of one direction wait if the rate limit is exceeded.
    pub queue_bytes: usize,
    /// Share of segments that are lost at random in each direction, from 0 to 1.
    pub loss: f64,
    /// Size of the largest IP packet, from 68 to 65,535 bytes. IPv6 needs at least 1,280 bytes.
    pub mtu_bytes: u32,
    /// TCP's initial congestion window, in segments. `None` keeps the kernel's default (10).
    pub initial_window_segments: Option<u32>,
    /// TCP's congestion control, such as `cubic` or `bbr`. `None` keeps the kernel's default.
    pub congestion_control: Option<String>,
    /// The kind of device that carries the frames. With `None`, the link uses TUN devices with offloads. If that fails,
    /// it uses virtual Ethernet.
    pub carrier: Option<Carrier>,
    /// `true` if the link hands each frame to the other side as soon as it has read it, whole and unchanged. All
    /// conditions are then ignored. Such a link shows the limit of the machine for this kind of device.
    pub is_bare: bool,
    /// Seed of the random numbers that determine which segments are lost.
    pub seed: u64,
}

/// The kind of device through which a link receives frames from the kernel and hands them back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// Each side has a TUN device.
    Tun {
        /// `true` if the kernel hands over uncut frames, which the link cuts into segments if necessary. Offloads save
        /// CPU time if no frame has to be cut.
        has_offloads: bool,
    },
    /// Each side has a virtual Ethernet device. The emulator reads and writes the device's peer through a packet
    /// socket. This needs no TUN, and no permission to open `/dev/net/tun`.
    Veth,
}

impl Default for Link {
    fn default() -> Self {
        let conditions = Conditions::default();
        Self {
            rtt: 2 * conditions.delay,
            rate_bits_per_s: conditions.rate_bits_per_s,
            queue_bytes: conditions.queue_bytes,
            loss: conditions.loss,
            mtu_bytes: 1500,
            initial_window_segments: None,
            congestion_control: None,
            carrier: None,
            is_bare: false,
            seed: conditions.seed,
        }
    }
}

impl Link {
    /// Sets up the link. This works without root and without other programs. The kernel must allow namespaces, and
    /// either TUN or virtual Ethernet.
    ///
    /// # Errors
    /// Returns an error whose message names what this machine does not provide, and the remedy.
    pub fn start(&self) -> Result<RunningLink, Error> {
        let [to_far, to_near] = self.conditions();
        self.start_with(&to_far, &to_near)
    }

    /// Returns the conditions that follow from the fields of this link. The first element is for the direction to the
    /// far side, the second for the direction to the near side. The caller can change them and pass them to
    /// [`start_with`](Self::start_with).
    pub fn conditions(&self) -> [Conditions; 2] {
        [0, 1].map(|direction| Conditions {
            delay: self.rtt / 2,
            rate_bits_per_s: self.rate_bits_per_s,
            queue_bytes: self.queue_bytes,
            loss: self.loss,
            seed: self.seed.wrapping_mul(2).wrapping_add(direction),
            ..Conditions::default()
        })
    }

    /// Sets up the link with these conditions for each direction, instead of the conditions that follow from the
    /// fields.
    ///
    /// # Errors
    /// Returns an error whose message names what this machine does not provide, and the remedy.
    pub fn start_with(&self, to_far: &Conditions, to_near: &Conditions) -> Result<RunningLink, Error> {
        if !(68..=65_535).contains(&self.mtu_bytes) {
            let why = "give 68 to 65535 (for IPv6 at least 1280)";
            return Err(Error::Invalid(format!("invalid MTU of {} bytes; {why}", self.mtu_bytes)));
        }
        let near = Namespace::new().map_err(no_namespaces)?;
        let far = near.another().map_err(no_namespaces)?;
        let (carrier, devices) = self.devices([&near, &far])?;
        let (near, far) = (Side::new(near, 0, self)?, Side::new(far, 1, self)?);
        let emulator = Emulator::start(devices, [to_far, to_near], self.is_bare)?;
        Ok(RunningLink { emulator, near, far, carrier })
    }

    fn devices(&self, sides: [&Namespace; 2]) -> Result<(Carrier, [Device; 2]), Error> {
        let try_one = |carrier| match carrier {
            Carrier::Tun { has_offloads } => both(sides.map(|side| tun_device(side, has_offloads))),
            Carrier::Veth => self.veth_devices(sides),
        };
        if let Some(carrier) = self.carrier {
            let way_out = if carrier == Carrier::Veth { VETH_WAY_OUT } else { TUN_WAY_OUT };
            let failed = |error| Error::Link(format!("could not create a link with {carrier:?} ({error}); {way_out}"));
            return Ok((carrier, try_one(carrier).map_err(failed)?));
        }
        let tun = Carrier::Tun { has_offloads: true };
        let tun_error = match try_one(tun) {
            Ok(devices) => return Ok((tun, devices)),
            Err(error) => error,
        };
        let failed = |veth_error| {
            Error::Link(format!(
                "could not create a link with TUN ({tun_error}) or with virtual Ethernet ({veth_error}); \
                 {TUN_WAY_OUT}, or {VETH_WAY_OUT}"
            ))
        };
        Ok((Carrier::Veth, try_one(Carrier::Veth).map_err(failed)?))
    }

    fn veth_devices(&self, sides: [&Namespace; 2]) -> io::Result<[Device; 2]> {
        // A third namespace, between the two sides, in which the emulator opens its packet sockets.
        let middle = sides[0].another()?;
        let mut netlink = Netlink::new(&middle)?;
        let names = ["near", "far"];
        let devices = [0, 1].map(|side| {
            let ends = [(&middle, names[side]), (sides[side], INTERFACE)];
            let hardware_address = HARDWARE_ADDRESS;
            netlink.add_veth(ends.map(|(namespace, name)| VethEnd { namespace, name, hardware_address }))?;
            let index = netlink.index(names[side])?;
            // This fails if the kernel has no IPv6; the interface then has no link-local address that must be turned
            // off.
            let _ = netlink.without_link_local(index);
            netlink.set_up(index, self.mtu_bytes, 1000)?;
            Ok(Device { file: packet::open(&middle, index)?, link_header_bytes: ETHERNET_BYTES })
        });
        both(devices)
    }
}

const TUN_WAY_OUT: &str = "load the module `tun` and let the user read and write /dev/net/tun";
const VETH_WAY_OUT: &str = "load the modules `veth` and `af_packet`";

fn no_namespaces(error: io::Error) -> Error {
    Error::Link(format!(
        "could not create a network namespace ({error}); run as root, or set sysctl user.max_user_namespaces above 0 (on \
         Ubuntu: kernel.apparmor_restrict_unprivileged_userns=0); in a container, add CAP_SYS_ADMIN and allow the system \
         call unshare"
    ))
}

fn tun_device(side: &Namespace, has_offloads: bool) -> io::Result<Device> {
    Ok(Device { file: tun::create(side, INTERFACE, has_offloads)?.into(), link_header_bytes: 0 })
}

fn both<T>(two: [io::Result<T>; 2]) -> io::Result<[T; 2]> {
    let [one, other] = two;
    Ok([one?, other?])
}

/// A link that is set up. It ends when this value is dropped, and also when the process ends or is killed. Other
/// processes cannot see the link or keep it alive.
#[derive(Debug)]
pub struct RunningLink {
    // Declared first to be dropped first, because its thread must end before the namespaces of its devices do.
    emulator: Emulator,
    near: Side,
    far: Side,
    carrier: Carrier,
}

impl RunningLink {
    /// Returns the near side, which is meant for clients.
    pub fn near(&self) -> &Side {
        &self.near
    }

    /// Returns the far side, which is meant for servers.
    pub fn far(&self) -> &Side {
        &self.far
    }

    /// Returns the kind of device that carries the frames.
    pub fn carrier(&self) -> Carrier {
        self.carrier
    }

    /// Returns a report of the traffic that the link carried since it was set up, and of the lateness of its frames.
    ///
    /// # Errors
    /// Returns [`Error::Link`] if the emulator's thread has ended because of a bug.
    pub fn report(&self) -> Result<Report, Error> {
        let mut report = self.emulator.report()?;
        for side in [&self.near, &self.far] {
            report.unread_frames +=
                side.dropped_frames().map_err(Error::system("could not read how many frames were dropped"))?;
        }
        Ok(report)
    }
}
