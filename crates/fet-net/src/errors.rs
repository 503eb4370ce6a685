//! Why a call has no answer.

use std::time::Duration;

use crate::transport::Connection;

/// Why a call has no answer, or a party did not join.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The party did not join in time.
    #[error("it did not join within {} s: {connection}{}", waited.as_secs(), hint(*unreadable, objection.as_deref(), connection))]
    NotJoined {
        /// How long it was waited for.
        waited: Duration,
        /// Packets that came and that the pinned identity had not made for this run.
        unreadable: u64,
        /// Why the ends cannot agree, as the party says without authentication.
        objection: Option<String>,
        /// Whether the relay was reached.
        connection: Connection,
    },
    /// The call makes no progress for the time of `Settings::patience`, though the party may be heard.
    #[error("{}", stalled(*since, *computing, connection))]
    Stalled {
        /// Since when no byte of the call went through.
        since: Duration,
        /// Whether the party says that it computes the answer.
        computing: bool,
        /// Whether the relay was reached.
        connection: Connection,
    },
    /// The relay does not let this end use the subjects of its run and party.
    #[error("{0}")]
    Denied(Connection),
    /// Two processes answer with the party's key at the same time.
    #[error(
        "two processes answer with its key: it runs twice, perhaps on two machines; have its operator stop one of them"
    )]
    Twice,
    /// Nothing was heard of the party for the time of `Settings::silence`, or nothing arrived there. The same call can go
    /// on: wait for the party and call again with the same request.
    #[error("it is silent since {} s: {connection}", since.as_secs())]
    Lost {
        /// Since when nothing was heard, or no byte went through.
        since: Duration,
        /// Whether the relay was reached.
        connection: Connection,
    },
    /// Another start of the party's program answers: what the first had in memory is gone. The next call goes to the new one.
    #[error("it was started again, and its state is gone: go back to a checkpoint")]
    Restarted,
    /// The party answers another process with the primary's key since: what it had begun for this one is gone.
    #[error(
        "another command with the primary's key has joined it since; give the same command again once that has ended"
    )]
    Taken,
    /// Nothing goes through, and packets that claim to be of this session are not authentic.
    #[error("what comes through was altered on its way: {packets} packets since {} s, and nothing that is authentic", since.as_secs())]
    Altered {
        /// Packets that were not authentic since the last progress, at either end.
        packets: u64,
        /// How long ago that was.
        since: Duration,
    },
    /// The request is larger than the other end takes; nothing was sent.
    #[error("the request has {size} bytes; {limit} are allowed")]
    TooLarge {
        /// Bytes of the request.
        size: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The answer is larger than this end takes; it was not sent.
    #[error("the answer has {size} bytes; {limit} are allowed")]
    AnswerTooLarge {
        /// Bytes of the answer, as the party says.
        size: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The party's program speaks another version; no request was sent.
    #[error(
        "it speaks version {theirs} of the protocol, and this program {ours}: run the same version ({about})"
    )]
    Version {
        /// This end's version.
        ours: u16,
        /// The party's version.
        theirs: u16,
        /// What the party says of its program.
        about: String,
    },
}

fn stalled(since: Duration, computing: bool, connection: &Connection) -> String {
    let seconds = since.as_secs();
    match computing {
        true => format!("it says that it computes, and has not answered for {seconds} s"),
        false => format!("nothing went through for {seconds} s: {connection}"),
    }
}

fn hint(unreadable: u64, objection: Option<&str>, connection: &Connection) -> String {
    match (unreadable, objection) {
        (_, Some(objection)) => format!("; {objection}"),
        (0, None) if matches!(connection, Connection::Up { warning: None }) => {
            "; no packet came from it: is it running, and does it have the same server, the same name of the run and its \
             present name?"
                .into()
        }
        (0, None) => String::new(),
        (many, None) => format!(
            "; {many} packets came that its pinned key had not made for this run: compare identities, and the names of \
             run and parties"
        ),
    }
}
