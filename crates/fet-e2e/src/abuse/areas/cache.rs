//! Cache folders with a damaged file: `fet` must give the same links as without a cache, or refuse the cache.

use crate::abuse::areas::run_folder::flip;
use crate::abuse::script::{Base, Expect, Script, Step};
use crate::mutate;
use rand::RngExt;

use Expect::{Accepted, Either};

const AREA: &str = "link cache";
const LINK: &str = "link shops.csv streets.csv --keys lon,lat --linker nearest --set k=3";
const VARIABLE: &str = "FET_LINK_CACHE=cache; export FET_LINK_CACHE;";

const DAMAGE: &[(&str, &str)] = &[
    ("as it is", ":"),
    ("empty", ": > $F"),
    ("half", "head -c $(($(wc -c < $F) / 2)) $F > tmp/x; cat tmp/x > $F; rm tmp/x"),
    ("one byte cut", "head -c $(($(wc -c < $F) - 1)) $F > tmp/x; cat tmp/x > $F; rm tmp/x"),
    ("one byte more", "printf x >> $F"),
    ("doubled", "cat $F $F > tmp/x; cat tmp/x > $F; rm tmp/x"),
    ("zeros", "n=$(wc -c < $F); head -c $n /dev/zero > $F"),
    ("ones", "n=$(wc -c < $F); head -c $n /dev/zero | tr '\\0' '\\377' > $F"),
    ("text", "echo hello > $F"),
    ("deleted", "rm $F"),
    ("a folder", "rm $F; mkdir $F"),
    ("a full folder", "rm $F; mkdir -p $F/x"),
    ("a FIFO", "rm $F; mkfifo $F"),
    ("a link to itself", "rm $F; ln -s $(basename $F) $F"),
    ("a link to nothing", "rm $F; ln -s nosuch $F"),
    ("a link to /dev/zero", "rm $F; ln -s /dev/zero $F"),
];

/// Replacements of the cache folder.
const FOLDERS: &[(&str, &str, Expect)] = &[
    ("a file", "echo > cache", Either),
    ("a link to itself", "ln -s cache cache", Either),
    ("a link to nothing", "ln -s nosuch cache", Either),
    ("a FIFO", "mkfifo cache", Either),
    ("below a file", "echo > x; ln -s x/y cache", Either),
];

pub(crate) fn cases(seed: u64) -> Vec<Script> {
    let damaged = |name: String, damage: String| {
        let warm = Step::new(format!("{LINK} --out reference.csv"), Accepted).before(VARIABLE);
        let again = Step::new(format!("{LINK} --out l.csv"), Either).before(VARIABLE);
        let again = again.prepare(format!("F=$(ls -d cache/*); {damage}")).names("cache");
        let case = Script::new(AREA, format!("{name}: link"), Base::Tables);
        let link = case.step(warm).step(again).same("l.csv", "reference.csv");
        let warm = Step::new("run shops.toml --out first", Accepted).before(VARIABLE);
        let again = Step::new("run shops.toml --out second", Either).before(VARIABLE);
        let again = again.prepare(format!("for F in cache/*; do {damage}; done")).names("cache");
        let case = Script::new(AREA, format!("{name}: run"), Base::Tables);
        [link, case.step(warm).step(again).same("first/predictions.csv", "second/predictions.csv")]
    };
    let named = DAMAGE.iter().flat_map(|(name, damage)| damaged((*name).to_string(), (*damage).to_string()));
    let mut rng = mutate::generator(seed, AREA, 0);
    let flips: Vec<Script> = (0..30)
        .flat_map(|_| {
            let (at, bit) = (rng.random_range(0..1000u32), rng.random_range(0..8u32));
            damaged(format!("bit {bit} at {at} per mille"), flip(at, bit))
        })
        .collect();
    let folders = FOLDERS.iter().flat_map(|(name, prepare, expect)| {
        let link = Step::new(format!("{LINK} --out l.csv"), *expect).before(VARIABLE);
        let given = Step::new(format!("{LINK} --out l.csv --cache cache"), *expect);
        let run = Step::new("run shops.toml --out out", *expect).before(VARIABLE);
        [("link", link), ("link --cache", given), ("run", run)].map(|(by, step)| {
            Script::on_tables(
                AREA,
                format!("the folder is {name}: {by}"),
                step.prepare(*prepare).names("cache"),
            )
        })
    });
    let swapped =
        Script::new(AREA, "the file of another table", Base::Tables)
            .step(Step::new(format!("{LINK} --out reference.csv"), Accepted).before(VARIABLE))
            .step(
                Step::new(
                    "link shops.csv buses.csv --keys lon,lat --linker nearest --set k=3 --out other.csv",
                    Accepted,
                )
                .before(VARIABLE)
                .prepare("ls cache > tmp/one"),
            )
            .step(Step::new(format!("{LINK} --out l.csv"), Either).before(VARIABLE).names("cache").prepare(
                "o=$(cat tmp/one); for f in $(ls cache); do [ $f = $o ] || cp cache/$f cache/$o; done",
            ))
            .same("l.csv", "reference.csv");
    named.chain(flips).chain(folders).chain([swapped]).collect()
}
