//! Programs of primaries that a party serves at the same time.
//!
//! All rosters whose party's files name one state folder share the list, because they share the accounts in that folder.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::run_id::RunId;

/// Activity of a party without a request.
pub(super) const WAITS: &str = "waits for the primary";

/// Programs that a party serves.
#[derive(Default)]
pub(super) struct Programs {
    open: Mutex<Vec<Program>>,
    /// Number of places so far.
    begun: AtomicU64,
    /// Signals that a program has ended.
    ended: Condvar,
}

/// Program that a party serves.
struct Program {
    /// Number of the place: a program that joins again has another one.
    number: u64,
    id: ProgramId,
    /// Training that the program runs or waits for.
    trains: Option<Training>,
    /// True if the program waits until others have ended their answers.
    waits: bool,
    /// Current activity, for `fet status`.
    does: String,
    link: Arc<dyn Link>,
}

/// Number of the roster in the party's command, and instance id of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProgramId {
    pub(super) roster: usize,
    pub(super) instance: u64,
}

/// Training of a run in a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Training {
    pub(super) run: RunId,
    /// True if one such training at a time may run, because it writes accounts.
    pub(super) alone: bool,
}

/// Link to the programs of a roster.
pub(super) trait Link: Send + Sync {
    /// Ends the answers to a program.
    fn close(&self, instance: u64);

    /// Returns true if a program has been silent for so long that it is probably gone.
    fn is_gone(&self, instance: u64) -> bool;
}

/// Reason why a training cannot begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotNow {
    /// A program of another roster trains with the accounts that this training needs.
    Busy,
    /// A newer program has joined for the same training.
    Overtaken,
}

/// Place of a program in the list, which ends when it is dropped.
pub(super) struct ProgramPlace {
    programs: Arc<Programs>,
    number: u64,
    id: ProgramId,
}

impl Programs {
    /// Adds a program, and returns its place.
    pub(super) fn begin(self: &Arc<Self>, id: ProgramId, link: Arc<dyn Link>) -> ProgramPlace {
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        self.lock().push(Program { number, id, trains: None, waits: false, does: WAITS.into(), link });
        ProgramPlace { programs: Arc::clone(self), number, id }
    }

    /// Returns the current activity of all programs.
    pub(super) fn doing(&self) -> String {
        let open = self.lock();
        let busy: Vec<&str> =
            open.iter().map(|program| program.does.as_str()).filter(|does| *does != WAITS).collect();
        if busy.is_empty() { WAITS.to_string() } else { busy.join("; ") }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Program>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgramPlace {
    /// Sets the current activity.
    pub(super) fn does(&self, what: String) {
        if let Some(own) = self.programs.lock().iter_mut().find(|program| program.number == self.number) {
            own.does = what;
        }
    }

    /// Begins a training in this program. Returns the number of programs whose place it takes: those that train the same run, and,
    /// if one training at a time may run, all such trainings of the same roster.
    ///
    /// Waits until these programs have ended their current answers. Of several waiting programs, the newest gets the place.
    pub(super) fn train(&self, training: &Training) -> Result<usize, NotNow> {
        let conflicts = |program: &Program| {
            program.number != self.number
                && program.trains.as_ref().is_some_and(|other| {
                    (other.alone && training.alone)
                        || (program.id.roster, &other.run) == (self.id.roster, &training.run)
                })
        };
        let is_own = |program: &Program| program.id.roster == self.id.roster;
        let mut open = self.programs.lock();
        self.set(&mut open, Some(training.clone()), true);
        let mut taken = 0;
        let outcome = loop {
            let others = || open.iter().filter(|program| conflicts(program));
            if others().any(|program| is_own(program) && program.number > self.number) {
                break Err(NotNow::Overtaken);
            }
            let is_busy = |program: &Program| {
                !is_own(program) && !program.waits && !program.link.is_gone(program.id.instance)
            };
            if others().any(is_busy) {
                break Err(NotNow::Busy);
            }
            // Programs of another roster that also wait do not hold the accounts.
            let in_the_way: Vec<_> = others().filter(|program| is_own(program) || !program.waits).collect();
            if in_the_way.is_empty() {
                break Ok(taken);
            }
            taken = taken.max(in_the_way.len());
            in_the_way.iter().for_each(|program| program.link.close(program.id.instance));
            open = self.programs.ended.wait(open).unwrap_or_else(PoisonError::into_inner);
        };
        self.set(&mut open, outcome.is_ok().then(|| training.clone()), false);
        outcome
    }

    /// Sets the training of this program.
    fn set(&self, open: &mut [Program], trains: Option<Training>, waits: bool) {
        if let Some(own) = open.iter_mut().find(|program| program.number == self.number) {
            (own.trains, own.waits) = (trains, waits);
        }
        self.programs.ended.notify_all();
    }

    /// Ends the training in this program.
    pub(super) fn trained(&self) {
        self.set(&mut self.programs.lock(), None, false);
    }
}

impl Drop for ProgramPlace {
    fn drop(&mut self) {
        self.programs.lock().retain(|program| program.number != self.number);
        self.programs.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(roster: usize, instance: u64) -> ProgramId {
        ProgramId { roster, instance }
    }

    fn training(run: char, alone: bool) -> Training {
        Training { run: RunId::parse(&run.to_string().repeat(32)).expect("an id"), alone }
    }

    /// Notes the closed programs.
    #[derive(Default)]
    struct Lanes {
        closed: Mutex<Vec<u64>>,
        gone: Mutex<bool>,
    }

    impl Link for Lanes {
        fn close(&self, instance: u64) {
            self.closed.lock().expect("sound").push(instance);
        }

        fn is_gone(&self, _: u64) -> bool {
            *self.gone.lock().expect("sound")
        }
    }

    impl Lanes {
        fn closed(&self) -> Vec<u64> {
            self.closed.lock().expect("sound").clone()
        }
    }

    fn begin(programs: &Arc<Programs>, id: ProgramId, lanes: &Arc<Lanes>) -> ProgramPlace {
        programs.begin(id, Arc::clone(lanes) as Arc<dyn Link>)
    }

    #[test]
    fn trainings_of_other_runs_go_on_unless_they_need_the_accounts() {
        let programs = Arc::new(Programs::default());
        let lanes = Arc::new(Lanes::default());
        let places = [1, 2].map(|instance| begin(&programs, id(0, instance), &lanes));
        assert_eq!(places[0].train(&training('a', false)).expect("free"), 0);
        assert_eq!(places[1].train(&training('b', false)).expect("free"), 0);
        let other = begin(&programs, id(1, 1), &lanes);
        // A run of another roster may draw the same id, and has its own folder in another state.
        assert_eq!(other.train(&training('c', true)).expect("free"), 0);
        assert!(lanes.closed().is_empty());
    }

    #[test]
    fn a_command_given_again_waits_for_the_former_one() {
        let programs = Arc::new(Programs::default());
        let lanes = Arc::new(Lanes::default());
        let former = begin(&programs, id(0, 1), &lanes);
        former.train(&training('a', false)).expect("free");
        let new = begin(&programs, id(0, 2), &lanes);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| new.train(&training('a', false)).expect("free"));
            while lanes.closed().is_empty() {
                std::thread::yield_now();
            }
            assert!(!waits.is_finished(), "the former one still answers");
            drop(former);
            assert_eq!(waits.join().expect("no panic"), 1);
        });
        assert_eq!(lanes.closed(), [1]);
    }

    #[test]
    fn the_newest_of_several_waiting_commands_gets_the_place() {
        let programs = Arc::new(Programs::default());
        let lanes = Arc::new(Lanes::default());
        let former = begin(&programs, id(0, 1), &lanes);
        former.train(&training('a', false)).expect("free");
        let (second, third) = (begin(&programs, id(0, 2), &lanes), begin(&programs, id(0, 3), &lanes));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| second.train(&training('a', false)));
            while lanes.closed().is_empty() {
                std::thread::yield_now();
            }
            let newest = scope.spawn(|| third.train(&training('a', false)));
            assert_eq!(waits.join().expect("no panic"), Err(NotNow::Overtaken));
            drop(former);
            assert!(newest.join().expect("no panic").is_ok());
        });
    }

    /// A program whose lane was closed may join again with the same instance id.
    #[test]
    fn a_program_that_joins_twice_has_two_places() {
        let programs = Arc::new(Programs::default());
        let lanes = Arc::new(Lanes::default());
        let former = begin(&programs, id(0, 1), &lanes);
        former.train(&training('a', true)).expect("free");
        let again = begin(&programs, id(0, 1), &lanes);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| again.train(&training('b', true)));
            while lanes.closed().is_empty() {
                std::thread::yield_now();
            }
            assert!(!waits.is_finished(), "the former session holds the accounts");
            drop(former);
            assert_eq!(waits.join().expect("no panic"), Ok(1));
        });
        again.does("Forward".into());
        assert_eq!(programs.doing(), "Forward", "the end of the former session leaves the other place");
    }

    #[test]
    fn a_primary_does_not_end_the_training_of_another() {
        let programs = Arc::new(Programs::default());
        let lanes = Arc::new(Lanes::default());
        let first = begin(&programs, id(0, 1), &lanes);
        first.train(&training('a', true)).expect("free");
        let second = begin(&programs, id(1, 1), &lanes);
        assert_eq!(second.train(&training('b', true)), Err(NotNow::Busy));
        assert!(lanes.closed().is_empty());
        *lanes.gone.lock().expect("sound") = true;
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| second.train(&training('b', true)).expect("the other one is gone"));
            while lanes.closed().is_empty() {
                std::thread::yield_now();
            }
            drop(first);
            assert_eq!(waits.join().expect("no panic"), 1);
        });
        *lanes.gone.lock().expect("sound") = false;
        second.trained();
        let third = begin(&programs, id(0, 2), &lanes);
        assert_eq!(third.train(&training('c', true)).expect("the second one has ended"), 0);
    }

    #[test]
    fn shows_what_all_programs_do() {
        let programs = Arc::new(Programs::default());
        let lanes = Arc::new(Lanes::default());
        let first = begin(&programs, id(0, 1), &lanes);
        let second = begin(&programs, id(0, 2), &lanes);
        assert_eq!(programs.doing(), WAITS);
        first.does("Forward in epoch 1".into());
        assert_eq!(programs.doing(), "Forward in epoch 1");
        second.does("Predict".into());
        assert_eq!(programs.doing(), "Forward in epoch 1; Predict");
        drop(first);
        assert_eq!(programs.doing(), "Predict");
    }
}
