//! Survey of formats other than plain numbers and ISO dates: dates that begin with day or month, amounts, and
//! times of day. The surveys of pieces can be merged in any order.

use crate::date;
use crate::error::shortened;
use crate::number::number;
use crate::options::Kind;
use crate::written::{DateOrder, Decided, Decimal, Evidence, unit};

use super::units::Units;

/// Minimum share of cells in one form for a note about the other cells.
const MOSTLY: f64 = 0.5;

/// Property that all cells may share.
#[derive(Clone, Debug)]
enum Shared {
    Unseen,
    Same(String),
    Different,
}

impl Shared {
    fn add(&mut self, found: &str) {
        match self {
            Self::Unseen => *self = Self::Same(found.to_string()),
            Self::Same(known) if known == found => {}
            _ => *self = Self::Different,
        }
    }

    fn merge(&mut self, other: &Self) {
        match other {
            Self::Unseen => {}
            Self::Same(found) => self.add(found),
            Self::Different => *self = Self::Different,
        }
    }
}

/// Counts and evidence from the present cells.
#[derive(Clone, Debug)]
pub(super) struct WrittenSurvey {
    present: u64,
    dates: DayMonthDates,
    amounts: Amounts,
    times: u64,
    formulas: u64,
    /// Number of dates in a form that is inferred.
    inferred_dates: u64,
    /// The least cell that is none of these.
    other: Option<String>,
}

/// Dates that begin with day or month.
#[derive(Clone, Debug)]
struct DayMonthDates {
    count: u64,
    order: Evidence,
    /// Format of the dates, with `%1` and `%2` for the first and second number: `%1/%2/%Y`.
    shape: Shared,
    /// Number of dates such as 05.03.24.
    short: u64,
}

impl DayMonthDates {
    fn look(&mut self, cell: &str) {
        if let Some(shape) = shape(cell)
            && DateOrder::look(cell, &mut self.order)
        {
            self.count += 1;
            self.shape.add(&shape);
        }
        self.short += u64::from(is_short(cell));
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.order.merge(other.order);
        self.shape.merge(&other.shape);
        self.short += other.short;
    }
}

/// Numbers with an optional unit and optional separators.
#[derive(Clone, Debug, Default)]
struct Amounts {
    count: u64,
    decimal: Evidence,
    units: Units,
    /// Number of cells that are plain numbers.
    plain: u64,
    /// The least cell that fits the first, and the second form alone.
    alone: [Option<String>; 2],
}

impl Amounts {
    fn look(&mut self, cell: &str) {
        let (unit, body) = unit(cell);
        let starts = |sign: char| sign.is_ascii_digit() || "+-.,(\u{2212}".contains(sign);
        let decided = self.decimal.alone();
        if body.starts_with(starts) && Decimal::look(cell, &mut self.decimal) {
            self.count += 1;
            self.plain += u64::from(number(cell).is_some());
            self.units.look(unit);
            for (place, (before, after)) in decided.into_iter().zip(self.decimal.alone()).enumerate() {
                if before < after {
                    keep_least(&mut self.alone[place], cell);
                }
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.decimal.merge(other.decimal);
        self.units.merge(&other.units);
        self.plain += other.plain;
        for (all, other) in self.alone.iter_mut().zip(&other.alone) {
            other.iter().for_each(|cell| keep_least(all, cell));
        }
    }
}

/// Keeps the lesser one.
pub(super) fn keep_least(kept: &mut Option<String>, cell: &str) {
    if kept.as_deref().is_none_or(|known| cell < known) {
        *kept = Some(cell.to_string());
    }
}

impl WrittenSurvey {
    pub(super) fn new() -> Self {
        Self {
            present: 0,
            dates: DayMonthDates { count: 0, order: Evidence::default(), shape: Shared::Unseen, short: 0 },
            amounts: Amounts::default(),
            times: 0,
            formulas: 0,
            inferred_dates: 0,
            other: None,
        }
    }

    pub(super) fn look(&mut self, cell: &str) {
        self.present += 1;
        let Some(first) = cell.chars().next() else { return };
        self.formulas += u64::from(first == '=');
        let before = self.known_cells();
        // Most texts begin with a letter, and are none of these.
        if first.is_ascii_digit() {
            self.dates.look(cell);
            self.times += u64::from(date::hours(cell).is_some());
            self.inferred_dates += u64::from(date::date(cell).is_some());
        }
        self.amounts.look(cell);
        if self.known_cells() == before {
            keep_least(&mut self.other, cell);
        }
    }

    /// The number of cells in each form, added up.
    fn known_cells(&self) -> u64 {
        self.dates.count + self.dates.short + self.times + self.amounts.count + self.inferred_dates
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.present += other.present;
        self.dates.merge(&other.dates);
        self.amounts.merge(&other.amounts);
        self.times += other.times;
        self.formulas += other.formulas;
        self.inferred_dates += other.inferred_dates;
        other.other.iter().for_each(|cell| keep_least(&mut self.other, cell));
    }

    pub(super) fn units(&self) -> &Units {
        &self.amounts.units
    }

    /// Returns the cells that would decide the column's form although they are few and the others have two readings or another form.
    pub(super) fn few(&self) -> Option<Deciding> {
        if self.all(self.dates.count)
            && let Shared::Same(shape) = &self.dates.shape
        {
            let [one, two] = formats(shape).map(|format| format!("\"{format}\""));
            let few = self.dates.order.few(DateOrder::FORMS)?;
            let (is, settings) = (Form::Order(few.form), [one, two]);
            return Some(Deciding { is, count: few.count, of: self.present, against: few.against, settings });
        }
        let few = self.amounts.decimal.few(Decimal::FORMS).filter(|_| self.all(self.amounts.count))?;
        let settings = Decimal::FORMS.map(|form| format!("\"{}\"", Kind::Amount(form)));
        Some(Deciding {
            is: Form::Sign(few.form),
            count: few.count,
            of: self.present,
            against: few.against,
            settings,
        })
    }

    /// Returns true if every cell is a date, every cell is an amount, or every cell is a time, in any format.
    pub(super) fn is_known(&self) -> bool {
        [self.dates.count, self.dates.short, self.times, self.amounts.count]
            .into_iter()
            .any(|count| self.all(count))
    }

    fn all(&self, count: u64) -> bool {
        self.present > 0 && count == self.present
    }

    /// Returns the kind that fits every cell in exactly one format.
    pub(super) fn kind(&self) -> Option<Kind> {
        self.date().or_else(|| self.amount())
    }

    pub(super) fn date(&self) -> Option<Kind> {
        let Shared::Same(shape) = &self.dates.shape else { return None };
        let order = match self.dates.order.decided(DateOrder::FORMS) {
            Decided::As(order) => order,
            Decided::Either => DateOrder::DayFirst,
            Decided::Open | Decided::Both => return None,
        };
        let [first, second] = if order == DateOrder::DayFirst { ["%d", "%m"] } else { ["%m", "%d"] };
        let format = shape.replace("%1", first).replace("%2", second);
        self.all(self.dates.count).then_some(Kind::Date { format: Some(format) })
    }

    pub(super) fn amount(&self) -> Option<Kind> {
        let form = match self.amounts.decimal.decided(Decimal::FORMS) {
            Decided::As(form) => form,
            Decided::Either => Decimal::Point,
            Decided::Open | Decided::Both => return None,
        };
        (self.all(self.amounts.count) && !self.amounts.units.differ()).then_some(Kind::Amount(form))
    }

    /// Returns the note about a column that is read as `kind`, or as strings.
    pub(super) fn note(&self, name: &str, kind: Option<&Kind>) -> Option<String> {
        match kind {
            Some(Kind::Date { format: Some(format) }) => Some(format!(
                "dates read as date:{format}, the only format that fits all cells; set its kind if the format is wrong"
            )),
            Some(Kind::Amount(_)) => {
                let unit = match self.amounts.units.only() {
                    Some("%") => " in per cent (12 % is read as 12)",
                    Some(unit) if !unit.is_empty() => " without their unit",
                    _ => "",
                };
                let alone = match kind? {
                    Kind::Amount(Decimal::Comma) => 1,
                    _ => 0,
                };
                let decided = self.amounts.alone[alone].as_deref().map(|cell| {
                    let (count, of) = (self.amounts.decimal.alone()[alone], self.present);
                    format!(
                        ", the only format that fits {count} of {of} cells, such as \"{}\"",
                        shortened(cell)
                    )
                });
                Some(format!(
                    "amounts read as numbers{unit}, in the format {}{}; set its kind if the format is wrong",
                    kind?,
                    decided.unwrap_or_default()
                ))
            }
            Some(_) => None,
            None => self.unread(name),
        }
    }

    /// Returns the reason for reading a column called `name` as strings although it could be dates, amounts or times.
    fn unread(&self, name: &str) -> Option<String> {
        let mostly = |count: u64| count > 0 && count as f64 >= MOSTLY * self.present as f64;
        if self.all(self.dates.count) {
            let orders = self.dates.order.decided(DateOrder::FORMS);
            return Some(match (&self.dates.shape, orders) {
                (_, Decided::Both) => {
                    "some dates begin with the day and others with the month; correct them".to_string()
                }
                (Shared::Same(shape), _) => {
                    let [one, two] = formats(shape);
                    let shown = |text: &str| {
                        text.trim_start_matches("date:")
                            .replace("%d", "DD")
                            .replace("%m", "MM")
                            .replace("%Y", "YYYY")
                    };
                    format!(
                        "dates could be {} or {}; set its kind to {one} or {two}",
                        shown(&one),
                        shown(&two)
                    )
                }
                _ => "dates in more than one format; use a single format, such as 2024-03-05".to_string(),
            });
        }
        if self.all(self.dates.short) {
            return Some(
                "dates with two-digit years, whose century is unknown; set its kind, such as date:%d.%m.%y or date:%m/%d/%y"
                    .to_string(),
            );
        }
        if self.all(self.times) {
            return Some(
                "times of day or durations, read as names; set its kind to time to read hours".to_string(),
            );
        }
        if self.all(self.amounts.count) {
            return Some(match self.amounts.decimal.decided(Decimal::FORMS) {
                Decided::Both => "some numbers have a decimal point and others a decimal comma; use a single format".to_string(),
                Decided::Open => "numbers with commas before three digits, which may be decimal commas or thousands separators; set its kind to \
                                  number:1,234.5 or number:1.234,5"
                    .to_string(),
                _ => "amounts with different units, or only some with a unit; use a single unit".to_string(),
            });
        }
        if self.all(self.formulas) {
            return Some("spreadsheet formulas, read as names; save their values instead".to_string());
        }
        let counts = [
            (self.dates.count, "dates"),
            (self.dates.short, "dates"),
            (self.times, "times of day"),
            (self.amounts.plain, "numbers"),
            (self.inferred_dates, "dates"),
            (self.amounts.count, "amounts"),
        ];
        let (count, what) = counts.into_iter().find(|(count, _)| mostly(*count))?;
        let mark = self.other.as_deref().map(shortened);
        let (example, missing) = match &mark {
            Some(mark) => (format!(", as \"{mark}\""), format!(" (missing = [\"{mark}\"])")),
            None => (String::new(), String::new()),
        };
        Some(format!(
            "{count} of {} cells are {what}, but the others are not{example}, so the column is read as names; correct the other cells, add them to \
             `missing`{missing} if they mark missing values, or set columns.{name} = \"category\" if it holds names",
            self.present
        ))
    }
}

/// Few cells that would decide the form of a whole column.
pub(super) struct Deciding {
    is: Form,
    count: u64,
    of: u64,
    against: bool,
    /// The settings of the two forms.
    settings: [String; 2],
}

enum Form {
    Order(DateOrder),
    Sign(Decimal),
}

impl Deciding {
    /// Returns true for a cell that fits the form of the few, and not the other.
    pub(super) fn fits(&self, cell: &str) -> bool {
        match self.is {
            Form::Order(form) => {
                DateOrder::FORMS.into_iter().all(|order| order.date(cell).is_some() == (order == form))
            }
            Form::Sign(form) => {
                Decimal::FORMS.into_iter().all(|sign| sign.number(cell).is_some() == (sign == form))
            }
        }
    }

    /// Returns true for a cell that has two values.
    pub(super) fn is_open(&self, cell: &str) -> bool {
        match self.is {
            Form::Order(_) => DateOrder::DayFirst.date(cell) != DateOrder::MonthFirst.date(cell),
            Form::Sign(_) => Decimal::Point.number(cell) != Decimal::Comma.number(cell),
        }
    }

    /// The rule that the first of the few cells breaks, and the advice; `example` is another cell of the column called `name`.
    pub(super) fn fault(&self, name: &str, example: Option<&str>) -> [String; 2] {
        let Self { count, of, against, settings: [one, two], .. } = self;
        let example = example.map(|cell| format!(", as \"{}\",", shortened(cell))).unwrap_or_default();
        let rule = if *against {
            format!(
                "must be in the form of the others{}: {count} of {of} cells are in another form, and this is the first of them",
                example.trim_end_matches(',')
            )
        } else {
            format!(
                "would decide the form of the column: {count} of {of} cells fit only one form, this is the first of them, and others{example} can be \
                 read in two ways"
            )
        };
        let advice = format!("correct the cell, or set columns.{name} = {one} or columns.{name} = {two}");
        [rule, advice]
    }
}

/// The two forms of dates of a shape.
fn formats(shape: &str) -> [String; 2] {
    [["%d", "%m"], ["%m", "%d"]]
        .map(|[one, two]| format!("date:{}", shape.replace("%1", one).replace("%2", two)))
}

/// The form of a date with day and month first, and of the time behind it.
fn shape(cell: &str) -> Option<String> {
    let (date, time) = cell.find([' ', 'T']).map_or((cell, ""), |at| cell.split_at(at));
    let sign = date.chars().find(|sign| !sign.is_ascii_digit()).filter(|sign| "/-.".contains(*sign))?;
    let groups: Vec<usize> = date.split(sign).map(str::len).collect();
    if !matches!(groups[..], [1..=2, 1..=2, 4]) {
        return None;
    }
    let time = match time.chars().next() {
        None => String::new(),
        Some(between) => {
            let clock = &time[1..];
            let parts = clock.split(':').count();
            let plain = clock.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
            match (plain, parts) {
                (true, 2) => format!("{between}%H:%M"),
                (true, 3) => format!("{between}%H:%M:%S"),
                _ => return None,
            }
        }
    };
    Some(format!("%1{sign}%2{sign}%Y{time}"))
}

/// Returns true for three numbers of one or two digits, as in 05.03.24.
fn is_short(cell: &str) -> bool {
    let Some(sign) = cell.chars().find(|sign| !sign.is_ascii_digit()).filter(|sign| "/-.".contains(*sign))
    else {
        return false;
    };
    let is_number =
        |part: &str| (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    cell.split(sign).count() == 3 && cell.split(sign).all(is_number)
}
