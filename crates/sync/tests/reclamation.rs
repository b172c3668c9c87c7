//! Objects within objects, each in the same domain or collector.
#![cfg(not(any(model = "loom", model = "tso")))]
#![allow(missing_docs)]

use std::sync::Arc;

use ascertain_sync::barrier::Fences;
use ascertain_sync::{epoch, hazard};

#[test]
fn a_flush_frees_what_a_dropped_structure_held() {
    let innermost = Arc::new(());
    let domain = hazard::Domain::new(Fences);
    let inner = hazard::Published::new(Arc::clone(&innermost), &domain);
    let outer = hazard::Published::new(hazard::Published::new(inner, &domain), &domain);
    let mut retirer = domain.retirer();
    drop(outer);
    retirer.flush();
    assert_eq!(Arc::strong_count(&innermost), 1);

    let collector = epoch::Collector::new(Fences);
    let inner = epoch::Published::new(Arc::clone(&innermost), &collector);
    let outer = epoch::Published::new(epoch::Published::new(inner, &collector), &collector);
    let handle = collector.register();
    drop(outer);
    handle.flush();
    assert_eq!(Arc::strong_count(&innermost), 1);
}
