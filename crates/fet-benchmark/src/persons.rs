//! Invented persons: names, addresses and birth dates, and the errors of a second registration.
//!
//! The kinds of errors are those of FEBRL's generator (Christen 2008): letters that are inserted, omitted, replaced or
//! exchanged, exchanged names, abbreviations, missing cells, and exchanged day and month. No person is real.

use chrono::{Datelike, Days, NaiveDate};

use crate::draw::Draw;

/// Names of the identifying columns.
pub(crate) const COLUMNS: [&str; 3] = ["name", "address", "born"];

/// Probability that a name has a typing error.
const TYPO_IN_NAME: f64 = 0.25;
/// Probability that first name and surname change places.
const EXCHANGED: f64 = 0.03;
/// Probability that the address has a typing error.
const TYPO_IN_ADDRESS: f64 = 0.3;
/// Probability that the kind of street is abbreviated.
const ABBREVIATED: f64 = 0.4;
/// Probability that a person has moved, so that the address is another one.
const MOVED: f64 = 0.1;
/// Probability that a cell of the address or the birth date is missing.
const MISSING: f64 = 0.04;
/// Probability that the birth date has an error.
const WRONG_DATE: f64 = 0.1;

const FEMALE: [&str; 40] = [
    "Mary",
    "Patricia",
    "Linda",
    "Barbara",
    "Elizabeth",
    "Jennifer",
    "Maria",
    "Susan",
    "Margaret",
    "Dorothy",
    "Lisa",
    "Nancy",
    "Karen",
    "Betty",
    "Helen",
    "Sandra",
    "Donna",
    "Carol",
    "Ruth",
    "Sharon",
    "Michelle",
    "Laura",
    "Sarah",
    "Kimberly",
    "Deborah",
    "Jessica",
    "Shirley",
    "Cynthia",
    "Angela",
    "Melissa",
    "Brenda",
    "Amy",
    "Anna",
    "Rebecca",
    "Virginia",
    "Kathleen",
    "Pamela",
    "Martha",
    "Debra",
    "Amanda",
];
const MALE: [&str; 40] = [
    "James",
    "John",
    "Robert",
    "Michael",
    "William",
    "David",
    "Richard",
    "Charles",
    "Joseph",
    "Thomas",
    "Christopher",
    "Daniel",
    "Paul",
    "Mark",
    "Donald",
    "George",
    "Kenneth",
    "Steven",
    "Edward",
    "Brian",
    "Ronald",
    "Anthony",
    "Kevin",
    "Jason",
    "Matthew",
    "Gary",
    "Timothy",
    "Jose",
    "Larry",
    "Jeffrey",
    "Frank",
    "Scott",
    "Eric",
    "Stephen",
    "Andrew",
    "Raymond",
    "Gregory",
    "Joshua",
    "Jerry",
    "Dennis",
];
const SURNAMES: [&str; 80] = [
    "Smith",
    "Johnson",
    "Williams",
    "Jones",
    "Brown",
    "Davis",
    "Miller",
    "Wilson",
    "Moore",
    "Taylor",
    "Anderson",
    "Thomas",
    "Jackson",
    "White",
    "Harris",
    "Martin",
    "Thompson",
    "Garcia",
    "Martinez",
    "Robinson",
    "Clark",
    "Rodriguez",
    "Lewis",
    "Lee",
    "Walker",
    "Hall",
    "Allen",
    "Young",
    "Hernandez",
    "King",
    "Wright",
    "Lopez",
    "Hill",
    "Scott",
    "Green",
    "Adams",
    "Baker",
    "Gonzalez",
    "Nelson",
    "Carter",
    "Mitchell",
    "Perez",
    "Roberts",
    "Turner",
    "Phillips",
    "Campbell",
    "Parker",
    "Evans",
    "Edwards",
    "Collins",
    "Stewart",
    "Sanchez",
    "Morris",
    "Rogers",
    "Reed",
    "Cook",
    "Morgan",
    "Bell",
    "Murphy",
    "Bailey",
    "Rivera",
    "Cooper",
    "Richardson",
    "Cox",
    "Howard",
    "Ward",
    "Torres",
    "Peterson",
    "Gray",
    "Ramirez",
    "Watson",
    "Brooks",
    "Sanders",
    "Price",
    "Bennett",
    "Wood",
    "Barnes",
    "Ross",
    "Henderson",
    "Coleman",
];
const STREETS: [&str; 40] = [
    "Second",
    "Third",
    "Park",
    "Main",
    "Oak",
    "Pine",
    "Maple",
    "Cedar",
    "Elm",
    "View",
    "Washington",
    "Lake",
    "Hill",
    "Walnut",
    "Spring",
    "North",
    "Ridge",
    "Church",
    "Willow",
    "Mill",
    "Sunset",
    "Railroad",
    "Jackson",
    "West",
    "South",
    "Highland",
    "Johnson",
    "Forest",
    "Meadow",
    "Broad",
    "Franklin",
    "River",
    "Cherry",
    "Dogwood",
    "Hickory",
    "Laurel",
    "Locust",
    "Poplar",
    "Chestnut",
    "Lincoln",
];
/// Kinds of streets, with their abbreviations.
const KINDS: [(&str, &str); 5] =
    [("Street", "St"), ("Avenue", "Ave"), ("Road", "Rd"), ("Lane", "Ln"), ("Drive", "Dr")];

/// Sex of a person, which decides the first name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sex {
    Female,
    Male,
}

/// Invented person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Person {
    first: String,
    last: String,
    address: String,
    born: NaiveDate,
}

impl Person {
    /// Invents a person of this sex, who was born in a year.
    pub(crate) fn invent(draw: &mut Draw, sex: Sex, year: i32) -> Self {
        let first = draw.one_of(if sex == Sex::Female { &FEMALE } else { &MALE });
        let start = NaiveDate::from_ymd_opt(year, 1, 1).expect("a year of this era");
        let born = start + Days::new(draw.below(365) as u64);
        Self {
            first: first.to_string(),
            last: draw.one_of(&SURNAMES).to_string(),
            address: address(draw),
            born,
        }
    }

    /// Returns the cells of the columns [`COLUMNS`].
    pub(crate) fn cells(&self) -> [String; 3] {
        [format!("{} {}", self.first, self.last), self.address.clone(), self.born.to_string()]
    }

    /// Returns the cells as another organisation registered them, with errors.
    pub(crate) fn registered(&self, draw: &mut Draw) -> [String; 3] {
        let (mut first, mut last) = (self.first.clone(), self.last.clone());
        if draw.chance(TYPO_IN_NAME) {
            if draw.chance(0.5) { mistype(&mut first, draw) } else { mistype(&mut last, draw) }
        }
        if draw.chance(EXCHANGED) {
            std::mem::swap(&mut first, &mut last);
        }
        let mut address = if draw.chance(MOVED) { address(draw) } else { self.address.clone() };
        if draw.chance(ABBREVIATED) {
            for (long, short) in KINDS {
                if let Some(start) = address.strip_suffix(long) {
                    address = format!("{start}{short}");
                }
            }
        }
        if draw.chance(TYPO_IN_ADDRESS) {
            mistype(&mut address, draw);
        }
        if draw.chance(MISSING) {
            address.clear();
        }
        let mut born = self.born;
        if draw.chance(WRONG_DATE) {
            born = match NaiveDate::from_ymd_opt(born.year(), born.day(), born.month()) {
                Some(exchanged) if draw.chance(0.5) => exchanged,
                _ => born.with_year(born.year() + if draw.chance(0.5) { 1 } else { -1 }).unwrap_or(born),
            };
        }
        let born = if draw.chance(MISSING) { String::new() } else { born.to_string() };
        [format!("{first} {last}"), address, born]
    }
}

fn address(draw: &mut Draw) -> String {
    let number = 1 + draw.below(300);
    let street = draw.one_of(&STREETS);
    format!("{number} {street} {}", draw.one_of(&KINDS).0)
}

/// Inserts, omits, replaces or exchanges a letter.
fn mistype(text: &mut String, draw: &mut Draw) {
    let mut letters: Vec<char> = text.chars().collect();
    let at = draw.below(letters.len());
    let letter = char::from(b'a' + draw.below(26) as u8);
    match draw.below(4) {
        0 => letters.insert(at, letter),
        1 if letters.len() > 2 => drop(letters.remove(at)),
        2 if at + 1 < letters.len() => letters.swap(at, at + 1),
        _ => letters[at] = letter,
    }
    *text = letters.into_iter().collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts of 4,000 registrations: a share lies within 5 standard errors of its probability, and the seed is fixed.
    #[test]
    fn registrations_have_the_stated_shares_of_errors() {
        let mut draw = Draw::new("persons");
        let number = 4000;
        let (mut names, mut places, mut empty, mut dates) = (0, 0, 0, 0);
        for _ in 0..number {
            let person = Person::invent(&mut draw, Sex::Female, 1950);
            let [name, address, born] = person.registered(&mut draw);
            let cells = person.cells();
            assert!(born.is_empty() || born.parse::<NaiveDate>().is_ok(), "{born}");
            names += usize::from(name != cells[0]);
            places += usize::from(address.is_empty());
            empty += usize::from(born.is_empty());
            dates += usize::from(!born.is_empty() && born != cells[2]);
        }
        let near = |count: usize, share: f64| {
            let error = (share * (1.0 - share) / f64::from(number)).sqrt();
            assert!((count as f64 / f64::from(number) - share).abs() < 5.0 * error, "{count}, {share}");
        };
        near(places, MISSING);
        near(empty, MISSING);
        // A replaced letter can be the same one, and a date can be its own exchange, so these are upper bounds.
        let share = |count: usize| count as f64 / f64::from(number);
        let most = TYPO_IN_NAME + EXCHANGED;
        assert!(share(names) > 0.8 * most && share(names) < 1.1 * most, "{names}");
        assert!(share(dates) > 0.7 * WRONG_DATE && share(dates) < 1.2 * WRONG_DATE, "{dates}");
    }
}
