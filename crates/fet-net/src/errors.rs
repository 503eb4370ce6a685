//! Errors of calls.

use std::time::Duration;

use crate::transport::Connection;

/// Failure of a call, or of a party to join.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The party did not join in time.
    #[error("it did not join within {} s: {connection}{}", waited.as_secs(), hint(*unreadable, objection.as_deref(), connection))]
    NotJoined {
        /// Time that the caller waited.
        waited: Duration,
        /// Number of packets that arrived and that the pinned identity did not make for this run.
        unreadable: u64,
        /// Reason why the ends cannot agree, as the party reports without authentication.
        objection: Option<String>,
        /// State of the connection to the relay.
        connection: Connection,
    },
    /// The call made no progress for the time of `Settings::patience`, though the party may be heard.
    #[error("{}", stalled(*since, *computing, connection))]
    Stalled {
        /// Time since a byte of the call last went through.
        since: Duration,
        /// True if the party reports that it computes the answer.
        computing: bool,
        /// State of the connection to the relay.
        connection: Connection,
    },
    /// The relay denies this end the subjects of its run and party.
    #[error("{0}")]
    Denied(Connection),
    /// Two processes answer with the party's key at the same time.
    #[error("two processes answer with its key, perhaps on two machines: have its operator stop one of them")]
    Twice,
    /// The party was silent for the time of `Settings::silence`, or no data reached it. The same call can
    /// continue: wait for the party, and call again with the same request.
    #[error("it has been silent for {} s: {connection}", since.as_secs())]
    Lost {
        /// Time since the party was last heard, or since a byte last went through.
        since: Duration,
        /// State of the connection to the relay.
        connection: Connection,
    },
    /// The party's program has restarted and has lost its memory. The next call goes to the new program.
    #[error("it restarted and lost its state: go back to a checkpoint")]
    Restarted,
    /// The party has dropped its work for this process: another process with the primary's key took over, or
    /// this process was silent for an hour.
    #[error(
        "it has ended its work for this command, because another command with the primary's key took over, or this one was \
         silent for an hour: give the same command again"
    )]
    Taken,
    /// The call makes no progress, and packets that claim this session are not authentic.
    #[error("its packets were altered in transit: {packets} packets that are not authentic and no progress for {} s", since.as_secs())]
    Altered {
        /// Number of packets at either end that were not authentic since the last progress.
        packets: u64,
        /// Time since the last progress.
        since: Duration,
    },
    /// The request is larger than the other end accepts; it was not sent.
    #[error("the request has {size} bytes; at most {limit} are allowed")]
    TooLarge {
        /// Size of the request in bytes.
        size: u64,
        /// Maximum size in bytes.
        limit: u64,
    },
    /// The answer is larger than this end accepts; it was not sent.
    #[error("the answer has {size} bytes; at most {limit} are allowed")]
    AnswerTooLarge {
        /// Size of the answer in bytes, as reported by the party.
        size: u64,
        /// Maximum size in bytes.
        limit: u64,
    },
    /// The two programs have no protocol version in common; no request was sent.
    #[error(
        "it speaks version {theirs} of the links, this program speaks version {ours}, and they have none in common: upgrade {} ({about})",
        if theirs > ours { "this program" } else { "the party's program" }
    )]
    Version {
        /// This end's newest version.
        ours: u16,
        /// The party's newest version.
        theirs: u16,
        /// Description of the party's program, as reported by the party.
        about: String,
    },
}

fn stalled(since: Duration, computing: bool, connection: &Connection) -> String {
    let seconds = since.as_secs();
    match computing {
        true => format!("it reports that it computes, but it has not answered for {seconds} s"),
        false => format!("no data went through for {seconds} s: {connection}"),
    }
}

fn hint(unreadable: u64, objection: Option<&str>, connection: &Connection) -> String {
    match (unreadable, objection) {
        (_, Some(objection)) => format!("; {objection}"),
        (0, None) if matches!(connection, Connection::Up { warning: None }) => {
            "; no packet arrived from it: check that it is running, and that it uses the same server, run name and party \
             name"
                .into()
        }
        (0, None) => String::new(),
        (many, None) => {
            let packets = if many == 1 { "1 packet".to_string() } else { format!("{many} packets") };
            format!(
                "; {packets} arrived that did not answer this handshake: late answers to an earlier one, or packets that the \
                 party's pinned key did not make for this run. If more arrive, compare the identities and the names of the run \
                 and the parties"
            )
        }
    }
}
