//! A link between two network namespaces of this process, set up in one line.

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

/// An Ethernet header.
const ETHERNET_BYTES: usize = 14;
/// Both ends of each pair have it, so that whatever one sends is for the other, and nobody has to ask who is where.
const HARDWARE_ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// What a link should be like. Both directions are alike, but for what chance does in them.
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
    /// How long it takes there and back.
    pub rtt: Duration,
    /// How much goes each way, counted in IP packets; without, as much as the machine can.
    pub rate_bits_per_s: Option<u64>,
    /// How much may wait where there is a rate.
    pub queue_bytes: usize,
    /// The share of segments that are lost, each way.
    pub loss: f64,
    /// The largest IP packet.
    pub mtu_bytes: u32,
    /// How many segments TCP sends at first without an answer; as the kernel has it (10), if none is given.
    pub initial_window_segments: Option<u32>,
    /// TCP's congestion control, as `cubic` or `bbr`; as the kernel has it, if none is given.
    pub congestion_control: Option<String>,
    /// How frames get out of the kernel and in again; the first one that can be had, if none is given.
    pub carrier: Option<Carrier>,
    /// What chance is drawn from.
    pub seed: u64,
}

/// How frames get out of the kernel and in again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// A TUN on each side. With offloads the kernel leaves it to the emulator to cut what it sends into segments, which
    /// costs less where nothing has to be cut.
    Tun {
        /// Whether it does that.
        has_offloads: bool,
    },
    /// A pair of virtual Ethernet devices on each side, with a packet socket at its other end: where there is no TUN,
    /// or the user may not open it.
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
            seed: conditions.seed,
        }
    }
}

impl Link {
    /// Sets it up. It needs neither root nor any program, but namespaces, and TUN or virtual Ethernet.
    ///
    /// # Errors
    /// What is missing, and the way out.
    pub fn start(&self) -> Result<RunningLink, Error> {
        let [to_far, to_near] = self.conditions();
        self.start_with(&to_far, &to_near)
    }

    /// The conditions of both directions, to the far side and back, where one wants to change them for
    /// [`start_with`](Self::start_with).
    #[must_use]
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

    /// Sets it up with conditions of one's own for each direction, instead of those that follow from its fields.
    ///
    /// # Errors
    /// What is missing, and the way out.
    pub fn start_with(&self, to_far: &Conditions, to_near: &Conditions) -> Result<RunningLink, Error> {
        if !(68..=65_535).contains(&self.mtu_bytes) {
            return Err(Error::Mtu { mtu_bytes: self.mtu_bytes });
        }
        let near = Namespace::new().map_err(|source| Error::NoNamespaces { source })?;
        let far = near.another().map_err(|source| Error::NoNamespaces { source })?;
        let (carrier, devices) = self.devices([&near, &far])?;
        let (near, far) = (Side::new(near, 0, self)?, Side::new(far, 1, self)?);
        let emulator = Emulator::start(devices, [to_far, to_near])?;
        Ok(RunningLink { emulator, near, far, carrier })
    }

    fn devices(&self, sides: [&Namespace; 2]) -> Result<(Carrier, [Device; 2]), Error> {
        let try_one = |carrier| match carrier {
            Carrier::Tun { has_offloads } => both(sides.map(|side| tun_device(side, has_offloads))),
            Carrier::Veth => self.veth_devices(sides),
        };
        if let Some(carrier) = self.carrier {
            let devices = try_one(carrier).map_err(|source| Error::NoCarrier { carrier, source })?;
            return Ok((carrier, devices));
        }
        let tun = Carrier::Tun { has_offloads: true };
        let tun_source = match try_one(tun) {
            Ok(devices) => return Ok((tun, devices)),
            Err(source) => source,
        };
        let veth = try_one(Carrier::Veth);
        Ok((Carrier::Veth, veth.map_err(|veth_source| Error::NoCarriers { tun_source, veth_source })?))
    }

    fn veth_devices(&self, sides: [&Namespace; 2]) -> io::Result<[Device; 2]> {
        // Where the packet sockets are.
        let middle = sides[0].another()?;
        let mut netlink = Netlink::new(&middle)?;
        let names = ["near", "far"];
        let devices = [0, 1].map(|side| {
            let ends = [(&middle, names[side]), (sides[side], INTERFACE)];
            let hardware_address = HARDWARE_ADDRESS;
            netlink.add_veth(ends.map(|(namespace, name)| VethEnd { namespace, name, hardware_address }))?;
            let index = netlink.index(names[side])?;
            // There may be no IPv6.
            let _ = netlink.without_link_local(index);
            netlink.set_up(index, self.mtu_bytes, 1000)?;
            Ok(Device { file: packet::open(&middle, index)?, link_header_bytes: ETHERNET_BYTES })
        });
        both(devices)
    }
}

fn tun_device(side: &Namespace, has_offloads: bool) -> io::Result<Device> {
    Ok(Device { file: tun::create(side, INTERFACE, has_offloads)?.into(), link_header_bytes: 0 })
}

fn both<T>(two: [io::Result<T>; 2]) -> io::Result<[T; 2]> {
    let [one, other] = two;
    Ok([one?, other?])
}

/// A link that is up. It is gone when this is dropped or the process ends, however it ends: nothing of it is visible
/// outside, and no other process holds it.
#[derive(Debug)]
pub struct RunningLink {
    // Dropped first: it ends before its devices' namespaces do.
    emulator: Emulator,
    near: Side,
    far: Side,
    carrier: Carrier,
}

impl RunningLink {
    /// The side where clients are.
    #[must_use]
    pub fn near(&self) -> &Side {
        &self.near
    }

    /// The side where servers are.
    #[must_use]
    pub fn far(&self) -> &Side {
        &self.far
    }

    /// How frames get out of the kernel and in again.
    #[must_use]
    pub fn carrier(&self) -> Carrier {
        self.carrier
    }

    /// What it did so far.
    ///
    /// # Errors
    /// [`Error::Ended`], after a mistake of ours.
    pub fn report(&self) -> Result<Report, Error> {
        let mut report = self.emulator.report()?;
        for side in [&self.near, &self.far] {
            report.unread_frames +=
                side.dropped_frames().map_err(Error::system("nothing is known of what was lost"))?;
        }
        Ok(report)
    }
}
