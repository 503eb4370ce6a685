//! Threads that share a run's work.

/// Adds the current thread to the thread pool.
///
/// Otherwise this thread would sleep while the pool works and wake up for each of the many parts of a step.
/// On two cores this costs a tenth of the time of experiment `hdb`.
///
/// Call the function for a run whose parties are all in this process. If this thread waits, for example
/// for parties elsewhere, only the other threads work. With a single thread there would be no other threads,
/// so the function then does nothing. It also does nothing if the pool already runs.
pub fn take_part() {
    let wanted = std::env::var("RAYON_NUM_THREADS").ok().and_then(|threads| threads.parse().ok());
    let threads: usize = match wanted {
        None | Some(0) => std::thread::available_parallelism().map_or(1, usize::from),
        Some(threads) => threads,
    };
    if threads > 1 {
        // An error means that the pool already exists.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).use_current_thread().build_global();
    }
}
