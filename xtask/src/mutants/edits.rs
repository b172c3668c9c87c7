//! Mutants that are no ordering: steps that are left out or come in another order, and checks that always say the same.

/// The file, what is wrong in the mutant, a text that the file has once, and what stands there instead.
type Edit = (&'static str, &'static str, &'static str, &'static str);

const STACKS: &str = "rseq/stacks.rs";
const SEQUENCES: &str = "rseq/x86_64.rs";
const FLAGGED: &str = "event_count/flagged.rs";
const AWAITABLE: &str = "event_count/awaitable.rs";
const TWO_WORD: &str = "event_count/two_word.rs";
const SLEEP: &str = "event_count/sleep.rs";
const PRODUCER: &str = "ring/producer.rs";
const CONSUMER: &str = "ring/consumer.rs";
const SHARED: &str = "ring/shared.rs";
const POINTER: &str = "hazard/pointer.rs";
const DOMAIN: &str = "hazard/domain.rs";
const HANDLE: &str = "epoch/handle.rs";
const LOCAL: &str = "epoch/local.rs";
const COLLECTOR: &str = "epoch/collector.rs";
const RETIRED: &str = "reclaim/retired.rs";
const RECORDS: &str = "reclaim/records.rs";
const LOCK: &str = "per_cpu/lock.rs";
const FREE_LIST: &str = "per_cpu/free_list.rs";
const CHOOSE: &str = "barrier/choose.rs";
const MEMBARRIER: &str = "barrier/membarrier.rs";
const INTERRUPTS: &str = "barrier/interrupts.rs";
const CLIENT: &str = "barrierd/client.rs";
const FILE: &str = "barrierd/file.rs";

pub(super) const EDITS: &[Edit] = &[
    (
        STACKS,
        "a stack is stopped without the kernel's fence",
        "self.stop_by(cpu, fence)",
        "self.stop_by(cpu, |_| Ok(()))",
    ),
    (STACKS, "a stopped stack does not refuse", "        stack.admit(false);\n", ""),
    (
        POINTER,
        "a hazard pointer gives its place back before it lets go",
        r"        self.slot().store(std::ptr::null_mut(), Ordering::Release);
        // SAFETY: the record lives as long as the domain.
        unsafe { self.slot.as_ref() }.release();
",
        r"        // SAFETY: the record lives as long as the domain.
        unsafe { self.slot.as_ref() }.release();
        self.slot().store(std::ptr::null_mut(), Ordering::Release);
",
    ),
    (
        HANDLE,
        "a handle gives its place back before it unpins",
        r"        self.word().store(UNPINNED, Ordering::Release);
        // SAFETY: the record lives as long as the collector.
        unsafe { self.participant.as_ref() }.release();
",
        r"        // SAFETY: the record lives as long as the collector.
        unsafe { self.participant.as_ref() }.release();
        self.word().store(UNPINNED, Ordering::Release);
",
    ),
    (STACKS, "two stop a stack", "return Ok(None);", ""),
    (
        STACKS,
        "the next stopper is let in before sequences are",
        "        self.0.admit(true);\n        self.0.is_stopped.store(false, Release);",
        "        self.0.is_stopped.store(false, Release);\n        self.0.admit(true);",
    ),
    (
        STACKS,
        "a stack is fenced before it refuses",
        r"        stack.admit(false);
        let stopped = Stopped(stack);
        fence(Some(cpu)).map(|()| Some(stopped))
",
        r"        let stopped = Stopped(stack);
        let fenced = fence(Some(cpu));
        stack.admit(false);
        fenced.map(|()| Some(stopped))
",
    ),
    (
        STACKS,
        "a stack stays stopped where the kernel can't stop it",
        r"        let stopped = Stopped(stack);
        fence(Some(cpu)).map(|()| Some(stopped))
",
        "        fence(Some(cpu)).map(|()| Some(Stopped(stack)))\n",
    ),
    (STACKS, "a plain push goes past the end", "if len >= self.capacity {", "if len > self.capacity {"),
    (
        "rseq/outcome.rs",
        "a fence fences nobody",
        "    let fenced = membarrier::restart_sequences(cpu);",
        "    let fenced = Ok(());",
    ),
    (
        "rseq/outcome.rs",
        "to register is to fence",
        "    membarrier::register_restart_sequences()?;\n    membarrier::restart_sequences(cpu)",
        "    membarrier::register_restart_sequences()",
    ),
    (
        "rseq/plain.rs",
        "two that change the owner give the words back",
        "self.generation.fetch_add(1, Relaxed);",
        "self.generation.store(self.generation.load(Relaxed) + 1, Relaxed);",
    ),
    (
        SEQUENCES,
        "a sequence works on the first CPU that has no data",
        "\"jae \",\n            $refused",
        "\"ja \",\n            $refused",
    ),
    (SEQUENCES, "the words of the first CPU that has none are acquired", r#""jae 6f\n","#, r#""ja 6f\n","#),
    (
        SEQUENCES,
        "a push reads the top before the limit",
        r#""mov {limit}, qword ptr [{stacks} + {cpu} + {ceiling}]\n",
            "mov {slot}, qword ptr [{stacks} + {cpu} + {top}]\n","#,
        r#""mov {slot}, qword ptr [{stacks} + {cpu} + {top}]\n",
            "mov {limit}, qword ptr [{stacks} + {cpu} + {ceiling}]\n","#,
    ),
    (
        SEQUENCES,
        "a pop reads the top before the limit",
        r#""mov {limit}, qword ptr [{stacks} + {cpu} + {floor}]\n",
            "mov {item}, qword ptr [{stacks} + {cpu} + {top}]\n","#,
        r#""mov {item}, qword ptr [{stacks} + {cpu} + {top}]\n",
            "mov {limit}, qword ptr [{stacks} + {cpu} + {floor}]\n","#,
    ),
    (
        SEQUENCES,
        "a push goes past the end",
        r#""jae {refused}\n",
            "mov qword"#,
        r#""ja {refused}\n",
            "mov qword"#,
    ),
    (SEQUENCES, "a pop goes past the beginning", "jbe 6f", "jb 6f"),
    (
        SEQUENCES,
        "a push writes behind its commit",
        r#""mov qword ptr [{slot}], {item}\n",
            "add qword ptr [{stacks} + {cpu} + {top}], {slot_bytes}","#,
        r#""add qword ptr [{stacks} + {cpu} + {top}], {slot_bytes}\n",
            "mov qword ptr [{slot}], {item}","#,
    ),
    (
        SEQUENCES,
        "a store does not look who owns the words",
        r#""jne {refused}\n",
            "mov qword ptr [{word}]"#,
        r#""mov qword ptr [{word}]"#,
    ),
    (
        SEQUENCES,
        "a store does not look on which CPU it is",
        r#""jne {refused}\n",
            "cmp {owner}"#,
        r#""cmp {owner}"#,
    ),
    (SEQUENCES, "sequences are not announced", r#""mov qword ptr fs:[{area} + 8], {cpu}""#, r#""nop""#),
    (FLAGGED, "an empty publication clears the flag", "count > 0 && A::add", "A::add"),
    (FLAGGED, "a waker does not count", "        self.wakes.fetch_add(1, Ordering::Release);\n", ""),
    (
        FLAGGED,
        "a waker wakes before it clears the flag",
        "self.clear_flag();\n        self.wake_threads();",
        "self.wake_threads();\n        self.clear_flag();",
    ),
    (
        AWAITABLE,
        "a waker looks who waits before it clears the flag",
        "self.count.clear_flag();\n        let (wakers, threads) = self.waiting(|waiting| (mem::take(&mut waiting.wakers), \
         waiting.threads));",
        "let (wakers, threads) = self.waiting(|waiting| (mem::take(&mut waiting.wakers), waiting.threads));\n        \
         self.count.clear_flag();",
    ),
    (
        AWAITABLE,
        "a task enters after its last look at the version",
        "self.enter(context.waker());\n            // The last look at the version, in one step with setting the flag.\n            \
         if count.announce(self.seen).is_some() {",
        "let is_announced = count.announce(self.seen).is_some();\n            self.enter(context.waker());\n            \
         if is_announced {",
    ),
    (AWAITABLE, "one thread that sleeps is not woken", "if threads > 0 {", "if threads > 1 {"),
    (
        AWAITABLE,
        "threads that no longer sleep are woken",
        "            self.waiting(|waiting| waiting.threads -= 1);\n",
        "",
    ),
    (FLAGGED, "a waker wakes nobody", "        self.wakes.wake_all();\n", ""),
    (
        FLAGGED,
        "a waker wakes before it counts",
        "        self.wakes.fetch_add(1, Ordering::Release);\n        self.wakes.wake_all();",
        "        self.wakes.wake_all();\n        self.wakes.fetch_add(1, Ordering::Release);",
    ),
    (
        FLAGGED,
        "a flag is cleared in two steps",
        "self.word.fetch_and(!SLEEPERS, Ordering::Relaxed);",
        "self.word.store(self.word.load(Ordering::Relaxed) & !SLEEPERS, Ordering::Relaxed);",
    ),
    (
        FLAGGED,
        "who announces itself on a new version sleeps",
        "(other == announced).then_some(announcement)",
        "{ let _ = other; Some(announcement) }",
    ),
    (
        FLAGGED,
        "who announces itself looks for its flag before it looks how often sleepers were woken",
        r"        let announcement = Announcement(self.wakes.load(Ordering::Acquire));
        let announced = seen.get() | SLEEPERS;
        match self.word.compare_exchange(seen.get(), announced, Ordering::Relaxed, Ordering::Relaxed) {
",
        r"        let announced = seen.get() | SLEEPERS;
        let exchanged = self.word.compare_exchange(seen.get(), announced, Ordering::Relaxed, Ordering::Relaxed);
        let announcement = Announcement(self.wakes.load(Ordering::Acquire));
        match exchanged {
",
    ),
    (
        FLAGGED,
        "a sleeper does not look whether it was woken",
        " && self.wakes.load(Ordering::Relaxed) == wakes",
        " && wakes == wakes",
    ),
    (
        FLAGGED,
        "a sleeper does not look whether its flag is there",
        "self.word.load(Ordering::Relaxed) == seen.get() | SLEEPERS && ",
        "self.version() == seen && ",
    ),
    (
        FLAGGED,
        "an addition without LOCK is believed to be prompt",
        "impl Addition for Unlocked {\n    const IS_PROMPT: bool = false;",
        "impl Addition for Unlocked {\n    const IS_PROMPT: bool = true;",
    ),
    (TWO_WORD, "an empty publication clears the flag", "if count == 0 {", "if false {"),
    (
        TWO_WORD,
        "a flag is cleared after the version changes",
        r"        if had_sleepers {
            self.has_sleepers.swap(false, Ordering::Relaxed);
        }
        self.version.store(version.after(count).get(), Ordering::Release);
",
        r"        self.version.store(version.after(count).get(), Ordering::Release);
        if had_sleepers {
            self.has_sleepers.swap(false, Ordering::Relaxed);
        }
",
    ),
    (TWO_WORD, "a flag that was there is forgotten", "if had_sleepers || self", "if self"),
    (
        TWO_WORD,
        "a flag that came later is not looked at",
        "if had_sleepers || self.has_sleepers.load(Ordering::Relaxed) {",
        "if had_sleepers {",
    ),
    (
        TWO_WORD,
        "who announces itself on a new version sleeps",
        "(self.version() == seen).then_some(Announcement(seen.get()))",
        "Some(Announcement(seen.get()))",
    ),
    (
        TWO_WORD,
        "a sleeper looks for its flag alone",
        "self.has_sleepers.load(Ordering::Relaxed) && self.version() == seen",
        "{ let _ = seen; self.has_sleepers.load(Ordering::Relaxed) }",
    ),
    (TWO_WORD, "it is believed to be prompt", "const IS_PROMPT: bool = false;", "const IS_PROMPT: bool = true;"),
    (
        TWO_WORD,
        "who gave up is woken each time",
        "self.has_sleepers.swap(false, Ordering::Relaxed);",
        "self.has_sleepers.load(Ordering::Relaxed);",
    ),
    (SLEEP, "patience ends a millisecond early", "Duration::from_secs(1)", "Duration::from_millis(999)"),
    (
        SLEEP,
        "a short sleep ends after the deadline",
        "(Some(nap), Some(left)) => Some(nap.min(left)),",
        "(Some(nap), Some(_)) => Some(nap),",
    ),
    (SLEEP, "short sleeps stay short", "self.next = nap * 2;", "self.next = nap;"),
    (SLEEP, "sleeps that signals end grow without end", "self.next = nap * 2;", "self.next *= 2;"),
    (
        SLEEP,
        "the clock is looked at before a sleep",
        "        sleepers.sleep(announced, timeout);\n        now = Instant::now();",
        "        now = Instant::now();\n        sleepers.sleep(announced, timeout);",
    ),
    (
        "event_count/polled.rs",
        "a pause ends after the deadline",
        "(left.map_or(pause, |left| pause.min(left)), is_sleep)",
        "{ let _ = left; (pause, is_sleep) }",
    ),
    (
        SLEEP,
        "the announcement is not looked at before a sleep",
        "if !sleepers.is_announced(seen, announced) {",
        "if false {",
    ),
    (FLAGGED, "one more than 2^32 - 1 has no sleepers", "jle {had_sleepers}", "jl {had_sleepers}"),
    (FLAGGED, "a sum's carry is not looked at", "                \"jc {had_sleepers}\",\n", ""),
    (FLAGGED, "a sum's sign is not looked at", "                \"js {had_sleepers}\",\n", ""),
    (
        PRODUCER,
        "a push publishes before it writes",
        "self.put(0, item);\n        self.publish(1);",
        "self.publish(1);\n        self.next = self.next.before(1);\n        self.put(0, item);\n        self.next = self.next.after(1);",
    ),
    (
        PRODUCER,
        "a producer asks whether the ring is closed before it looks",
        "let count = self.shared.popped.count().snapshot();\n        let closed_at = self.shared.popped.closed_at();",
        "let closed_at = self.shared.popped.closed_at();\n        let count = self.shared.popped.count().snapshot();",
    ),
    (
        PRODUCER,
        "the one more of a consumer that is gone is room",
        "if closed_at.is_some() { self.next.before(self.capacity) } else { count }",
        "count",
    ),
    (
        PRODUCER,
        "a batch that may be empty does not look for room",
        "items.size_hint().0.max(1) > self.room()",
        "items.size_hint().0 > self.room()",
    ),
    (PRODUCER, "a full ring has room", "0 => Err(PushError::Full(())),", "0 if false => Err(PushError::Full(())),"),
    (
        PRODUCER,
        "a batch goes past the room",
        "while batch.pushed < batch.producer.room() {",
        "while batch.pushed <= batch.producer.room() {",
    ),
    (PRODUCER, "a producer that ends does not close", "        self.shared.pushed.close(self.next);\n", ""),
    (
        CONSUMER,
        "a consumer asks whether the ring is closed before it looks",
        "self.count = self.shared.pushed.count().snapshot();\n        let closed_at = self.shared.pushed.closed_at();",
        "let closed_at = self.shared.pushed.closed_at();\n        self.count = self.shared.pushed.count().snapshot();",
    ),
    (CONSUMER, "the one more of a producer that is gone is an item", "closed_at.unwrap_or(self.count)", "self.count"),
    (
        CONSUMER,
        "a pop says so before it reads",
        "let item = self.take();\n        self.publish(1);\n        item",
        "self.next = self.next.after(1);\n        self.publish(1);\n        self.next = self.next.before(1);\n        self.take()",
    ),
    (
        CONSUMER,
        "a batch that was forgotten is never told",
        "        self.tell();\n        self.count",
        "        self.count",
    ),
    (CONSUMER, "a consumer that ends does not close", "        self.0.shared.popped.close(self.0.next);\n", ""),
    (
        SHARED,
        "a side counts before it closes",
        "self.closed_at.store(at.get(), Ordering::Release);\n        self.count.publish();",
        "self.count.publish();\n        self.closed_at.store(at.get(), Ordering::Release);",
    ),
    (SHARED, "what is left in a ring is leaked", "(index != end).then(|| ", "(index != end && false).then(|| "),
    (POINTER, "a hazard pointer without a light side", "    barrier.light();\n", "    let _ = barrier;\n"),
    (POINTER, "a hazard pointer does not look again", "if again == object {", "if true {"),
    (
        POINTER,
        "the slot is written after the second look",
        "slot.store(object.cast(), Ordering::Release);\n    barrier.light();\n    let again = source.load(Ordering::Acquire);",
        "barrier.light();\n    let again = source.load(Ordering::Acquire);\n    slot.store(object.cast(), Ordering::Release);",
    ),
    (
        POINTER,
        "a load takes any domain's hazard pointer",
        "let hazard: &'h Hazard<B> = hazard;\n        self.check(&hazard.domain);",
        "let hazard: &'h Hazard<B> = hazard;",
    ),
    (
        POINTER,
        "an owned load takes any domain's hazard pointer",
        "-> OwnedGuard<T, B> {\n        self.check(&hazard.domain);",
        "-> OwnedGuard<T, B> {",
    ),
    (
        POINTER,
        "a hazard pointer that ends leaves its slot taken",
        "        unsafe { self.slot.as_ref() }.release();\n",
        "",
    ),
    (
        DOMAIN,
        "a scan without waiting",
        "            ticket.wait();\n            self.scan();\n        }\n        self.own()",
        "            let _ = ticket;\n            self.scan();\n        }\n        self.own()",
    ),
    (DOMAIN, "a scan of a ticket that has not passed", "if ticket.is_passed() =>", "if ticket.is_passed() || true =>"),
    (
        DOMAIN,
        "what is protected is freed",
        "protected.binary_search(&unsafe { retired.object() }).is_err()",
        "protected.binary_search(&unsafe { retired.object() }).is_err() || true",
    ),
    (
        DOMAIN,
        "an older ticket is one for what is fresh",
        "let ticket = self.domain.barrier().ticket();\n            self.sealed.append(&mut self.fresh);",
        "self.sealed.append(&mut self.fresh);\n            let ticket = self.domain.barrier().ticket();",
    ),
    (DOMAIN, "slots are searched unsorted", "        protected.sort_unstable();\n", ""),
    (
        DOMAIN,
        "a batch is no larger with more slots",
        "self.batch = BATCH + 2 * slots;",
        "self.batch = BATCH + 0 * slots;",
    ),
    (HANDLE, "a pin without a light side", "            self.collector.barrier().light();\n", ""),
    (
        HANDLE,
        "a guard within another unpins",
        "self.depth.set(depth - 1);",
        "self.word().store(UNPINNED, Ordering::Release);\n            self.depth.set(depth - 1);",
    ),
    (
        HANDLE,
        "guards that can't be counted are not refused",
        "depth.checked_add(1).expect(\"more guards than can be counted\")",
        "depth.wrapping_add(1)",
    ),
    (
        HANDLE,
        "a handle that ends stays pinned",
        "        self.word().store(UNPINNED, Ordering::Release);\n        // SAFETY",
        "        // SAFETY",
    ),
    (HANDLE, "a bag takes what was retired in a later epoch", ".filter(|last| last.epoch == bag.epoch)", ""),
    (
        HANDLE,
        "a heavy side that is slow is never waited for",
        "self.step(self.waiting() >= WAITING_MAX);",
        "self.step(false);",
    ),
    (
        COLLECTOR,
        "a label is what a load finds",
        "self.0.epoch.fetch_add(0, Ordering::Release)",
        "self.0.epoch.load(Ordering::Acquire)",
    ),
    (COLLECTOR, "what a parent's thread has half done is gone on with", "if turn.is_inherited {", "if false {"),
    (RETIRED, "two have the turn", "is_free.then(||", "(is_free || true).then(||"),
    (RETIRED, "a child waits for its parent's turn", "before != process && holder", "before == NOBODY && holder"),
    (POINTER, "any domain's retirer frees", "self.check(retirer.domain());\n        retirer", "retirer"),
    (POINTER, "any domain's retirer exchanges", "self.check(retirer.domain());\n        self", "self"),
    (POINTER, "any domain's retirer updates", "self.check(retirer.domain());\n        loop", "loop"),
    (HANDLE, "a load takes any collector's guard", "        self.check(&guard.collector);\n", ""),
    (HANDLE, "any collector's handle frees", "self.check(&handle.collector);\n        handle", "handle"),
    (HANDLE, "any collector's handle exchanges", "self.check(&handle.collector);\n        self", "self"),
    (HANDLE, "the last guard leaves a handle that is left to it", "depth == 2 && self.is_left.get()", "false"),
    (HANDLE, "a handle is left to a guard that does not look", "depth.saturating_add(1)", "depth"),
    (HANDLE, "the end of a thread frees what others left", "if !self.is_left.get() {", "if true {"),
    (HANDLE, "nobody frees what ended threads left", "} else if fresh == 1 {", "} else if false {"),
    (LOCAL, "the end of a thread leaves its handle", "END.try_with(|_| ())", "Ok(())"),
    (LOCAL, "a handle is kept after the end", "END.try_with(|_| ())", "END.try_with(|_| ()).or(Ok(()))"),
    (HANDLE, "a handle is freed before its last guard", "depth == 2 && self.is_left.get()", "self.is_left.get()"),
    (COLLECTOR, "one epoch is enough", ">= 2 * STEP", ">= STEP"),
    (
        COLLECTOR,
        "an epoch advances past those of the one before",
        "word == UNPINNED || word == current | PINNED",
        "word == word",
    ),
    (
        COLLECTOR,
        "an epoch advances without waiting for the heavy side",
        "} else if !ticket.is_passed() {",
        "} else if false {",
    ),
    (COLLECTOR, "an epoch that blocks does not wait for the heavy side", "                ticket.wait();\n", ""),
    (COLLECTOR, "an epoch advances by the heavy side of the one before", "            *self = Self::NotBegun;\n", ""),
    (
        COLLECTOR,
        "who comes last is not waited for",
        "self.0.participants.values().map(|participant| participant.0",
        "self.0.participants.values().skip(1).map(|participant| participant.0",
    ),
    (
        COLLECTOR,
        "only who came last is waited for",
        "self.0.participants.values().map(|participant| participant.0",
        "self.0.participants.values().take(1).map(|participant| participant.0",
    ),
    (
        RETIRED,
        "objects that are added are not counted",
        "        self.objects.fetch_add(objects, Ordering::Relaxed);\n        let mut head",
        "        let mut head",
    ),
    (
        RETIRED,
        "objects are counted after they can be taken",
        r"        self.objects.fetch_add(objects, Ordering::Relaxed);
        let mut head = self.head.load(Ordering::Relaxed);
        let node = Box::into_raw(Box::new(Node { items, objects, next: head }));
        while let Err(newer) = self.head.compare_exchange(head, node, Ordering::Release, Ordering::Relaxed) {
            head = newer;
            // SAFETY: nobody else has the node yet.
            unsafe { (*node).next = head };
        }
",
        r"        let mut head = self.head.load(Ordering::Relaxed);
        let node = Box::into_raw(Box::new(Node { items, objects, next: head }));
        while let Err(newer) = self.head.compare_exchange(head, node, Ordering::Release, Ordering::Relaxed) {
            head = newer;
            // SAFETY: nobody else has the node yet.
            unsafe { (*node).next = head };
        }
        self.objects.fetch_add(objects, Ordering::Relaxed);
",
    ),
    (
        RETIRED,
        "what could not be freed is looked at each time",
        "            self.look_at.store(MANY + left + left / 2, Ordering::Relaxed);\n",
        "            let _ = left;\n",
    ),
    (RETIRED, "objects are freed in a panic", " || thread::panicking() {", " || false && thread::panicking() {"),
    (RETIRED, "a node that is added later forgets the others", "            unsafe { (*node).next = head };\n", ""),
    (RETIRED, "who frees while pinned waits for ever more", "MANY + left + left / 2", "MANY + 2 * left"),
    (RETIRED, "too many are never freed", "if let Some(_turn) = Turn::take(&self.freeing) {", "if false {"),
    (RETIRED, "destructors free within one another", "if let Some(_turn) = Turn::take(&self.freeing) {", "if true {"),
    (
        "reclaim/published.rs",
        "an exchange of what is no longer there",
        "self.object.compare_exchange(from_ref(current).cast_mut(),",
        "self.object.compare_exchange({ let _ = from_ref(current); self.object.load(Ordering::Relaxed) },",
    ),
    (
        RECORDS,
        "a record that is taken is taken again",
        "!taken.load(Ordering::Relaxed) && !taken.swap(true, Ordering::Acquire)",
        "{ taken.swap(true, Ordering::Acquire); true }",
    ),
    (
        RECORDS,
        "looking whether a record is taken is enough",
        "!taken.load(Ordering::Relaxed) && !taken.swap(true, Ordering::Acquire)",
        "!taken.load(Ordering::Relaxed) && { taken.store(true, Ordering::Relaxed); true }",
    ),
    (RECORDS, "a record that is added later forgets the others", "            unsafe { (*record).next = head };\n", ""),
    (
        RETIRED,
        "a turn that panics does not end",
        "impl Drop for Turn<'_> {\n    fn drop(&mut self) {\n",
        "impl Drop for Turn<'_> {\n    fn drop(&mut self) {\n        if std::thread::panicking() { return; }\n",
    ),
    (
        "drop_all.rs",
        "a destructor's panic is lost",
        "Some(panic) => resume_unwind(panic),",
        "Some(panic) => discard(panic),",
    ),
    ("drop_all.rs", "a panic within another aborts", "Some(panic) if thread::panicking() => discard(panic),\n", ""),
    (
        "drop_all.rs",
        "what is thrown may not panic",
        "    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {\n        mem::forget(again);\n    }",
        "    drop(panic);",
    ),
    (
        "drop_all.rs",
        "a destructor's panic keeps the others",
        "        if first.is_none() {\n            first = Some(panic);",
        "        if first.is_none() {\n            resume_unwind(panic);",
    ),
    (LOCK, "a revocation has no fence", "self.revoke_by(rseq::fence)", "self.revoke_by(|_| Ok(()))"),
    (LOCK, "a revocation leaves the CPUs' owners", "        self.of_cpus.iter().for_each(Owned::disown);\n", ""),
    (LOCK, "a revocation leaves the shards' owners", "            shard.owned.disown();\n", ""),
    (
        LOCK,
        "a revocation fences before it takes the lock",
        r"        self.of_cpus.iter().for_each(Owned::disown);
        for shard in &self.shards {
            let _lock = shard.lock.lock();
            shard.owned.disown();
        }
        if self.of_cpus.is_empty() { Ok(()) } else { fence(None) }
",
        r"        let fenced = if self.of_cpus.is_empty() { Ok(()) } else { fence(None) };
        self.of_cpus.iter().for_each(Owned::disown);
        for shard in &self.shards {
            let _lock = shard.lock.lock();
            shard.owned.disown();
        }
        fenced
",
    ),
    (LOCK, "who lost the lock goes on as its owner", "            self.owner = NOBODY;\n", ""),
    (
        LOCK,
        "who was stopped has lost the lock",
        "                    Outcome::Refused => break false,\n                    Outcome::Aborted => (),",
        "                    Outcome::Refused | Outcome::Aborted => break false,",
    ),
    (
        LOCK,
        "a shard is acquired without its lock",
        "            let _lock = shard.lock.lock();\n            (Place",
        "            (Place",
    ),
    (
        LOCK,
        "a shard's word is stored without its lock",
        "                let _lock = shard.lock.lock();\n                shard.owned.store",
        "                shard.owned.store",
    ),
    (
        FREE_LIST,
        "a stack that is full forgets the box",
        "Outcome::Refused => return Some(Self::boxed(item)),",
        "Outcome::Refused => return None,",
    ),
    (FREE_LIST, "a shard grows", "if shard.len() == self.capacity {", "if false {"),
    (FREE_LIST, "who is at a stack does not make it busy", "                is_busy.set(true);\n", ""),
    (
        FREE_LIST,
        "what somebody else is at is not looked for again",
        "if first.is_some() || !is_busy.get() {",
        "if true {",
    ),
    (FREE_LIST, "the rest of what was taken is lost", "|item| self.push(item)", "drop"),
    (
        "per_cpu/counter.rs",
        "an addition that was stopped is lost",
        "Some(_) => self.add_shared(delta),",
        "Some(_) => (),",
    ),
    (CHOOSE, "fences have no light side", "None => Fences.light(),", "None => {}"),
    (
        CHOOSE,
        "a light side that is nothing has a fence for its heavy one",
        "Some(expedited) => expedited.ticket(),",
        "Some(_) => Fences.ticket(),",
    ),
    (
        MEMBARRIER,
        "no call of membarrier(2)",
        "let done = registered_barrier().or_else(|_| membarrier::global());",
        "let done: io::Result<()> = Ok(());",
    ),
    (MEMBARRIER, "the process does not register", "            membarrier::register_private_expedited()?;\n", ""),
    (
        MEMBARRIER,
        "a round does not wait for its turn",
        "        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);\n",
        "        let _ = &self.turn;\n",
    ),
    (
        MEMBARRIER,
        "to register is a barrier",
        "            membarrier::register_private_expedited()?;\n            membarrier::private_expedited()",
        "            membarrier::register_private_expedited()",
    ),
    (
        MEMBARRIER,
        "the slower way is not tried",
        "registered_barrier().or_else(|_| membarrier::global())",
        "registered_barrier()",
    ),
    (
        MEMBARRIER,
        "the quicker way is not tried",
        "membarrier::global().or_else(|_| registered_barrier())",
        "membarrier::global()",
    ),
    ("barrier/contract.rs", "a heavy side is not waited for", "self.ticket().wait();", "let _ = self.ticket();"),
    (
        MEMBARRIER,
        "a refusal is taken for a barrier",
        "    if let Some(errno) = errno {",
        "    if let Some(errno) = errno.filter(|_| false) {",
    ),
    (MEMBARRIER, "a round of the parent's is joined", ".filter(|rounds| rounds.process == process)", ""),
    (
        MEMBARRIER,
        "a ticket joins the round that is under way",
        "next.lock().unwrap_or_else(PoisonError::into_inner).take();",
        "next.lock().unwrap_or_else(PoisonError::into_inner).clone();",
    ),
    (
        MEMBARRIER,
        "a child waits for its parent's round",
        "None if self.process == generation() => return false,",
        "None if true => return false,",
    ),
    (
        MEMBARRIER,
        "a round that is not over has passed",
        "None if self.process == generation() => return false,",
        "None if false => return false,",
    ),
    (
        INTERRUPTS,
        "a daemon that died is waited for",
        "(!self.client.is_alive() && self.fallback().is_some_and(Ticket::is_passed))",
        "false",
    ),
    (INTERRUPTS, "what is fallen back to is not waited for", "Some(ticket) => ticket.wait(),", "Some(_) => {}"),
    (
        INTERRUPTS,
        "a daemon that is late is a barrier",
        ".is_ok() {\n            return;",
        ".is_ok() || true {\n            return;",
    ),
    (CLIENT, "a timestamp is any daemon's", "timestamp.page == self.page && self", "self"),
    (CLIENT, "a wait takes any daemon's timestamp", "if timestamp.page != self.page {", "if false {"),
    (CLIENT, "CPUs that are not there pass", "cpu >= self.cpus || (timestamp", "cpu < self.cpus && (timestamp"),
    (
        CLIENT,
        "strangers are trusted",
        "if uid != 0 && (uid != privileges::effective_user() || is_anybody) {",
        "if uid != 0 && is_anybody {",
    ),
    (CLIENT, "those whom nobody knows are trusted", "|| is_anybody)", "|| false && is_anybody)"),
    (CLIENT, "any page is a daemon's", "if head.load(page::MAGIC) != MAGIC {", "if false {"),
    (CLIENT, "any version is understood", "if version != VERSION {", "if false {"),
    (CLIENT, "any number of CPUs is believed", "if cpus == 0 || cpus > CPUS_MAX {", "if false {"),
    (
        CLIENT,
        "fewer CPUs than there are are enough",
        ".is_ok_and(|possible| possible > cpus)",
        ".is_ok_and(|possible| possible > cpus && false)",
    ),
    (FILE, "the interrupt that a timestamp was taken after is enough", "map::SEEN) > since", "map::SEEN) >= since"),
    (FILE, "a CPU that was seen offline when the timestamp was taken passes", "offline > since)", "offline >= since)"),
    (FILE, "an absent CPU is absent for ever", " && words.map(map::line(cpu) + map::SEEN) == 0", ""),
    (FILE, "absent is later than any timestamp", "(offline != ABSENT && offline > since)", "offline > since"),
    (FILE, "any word says idle", "map::IS_IDLE) == 1", "map::IS_IDLE) != 2"),
];
