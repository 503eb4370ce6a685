//! The threads that share a run's work.

/// Makes this thread one of them. Otherwise it would sleep while they work, and be woken, for each of a step's many parts: a tenth of
/// hdb's time on two cores.
///
/// For a run whose parties are all in this process. While this thread waits for others (parties elsewhere, say), the rest work without
/// it: with a single thread there would be no rest, so that nothing is done then, nor if the threads are at work already.
pub fn take_part() {
    let wanted = std::env::var("RAYON_NUM_THREADS").ok().and_then(|threads| threads.parse().ok());
    let threads: usize = match wanted {
        None | Some(0) => std::thread::available_parallelism().map_or(1, usize::from),
        Some(threads) => threads,
    };
    if threads > 1 {
        // An error says that the threads are there already.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).use_current_thread().build_global();
    }
}
