//! Python's regular expressions, as far as the crate `regex` supports them.
//!
//! The module rewrites an expression character by character, so that it matches the same texts in both
//! languages. Python's `\w` excludes combining marks, and its `\s` has four more control characters. Within a
//! class, `[` and `&&` are literal. Expressions that would match differently are refused.

use std::iter::Peekable;
use std::str::Chars;

use regex::Regex;

const SPACE: &str = r"\s\x1c-\x1f";
const WORD: &str = r"\p{L}\p{N}_";

/// Returns an expression that matches whole texts as Python's `fullmatch` does. Fails with the rule that the
/// pattern breaks.
pub(super) fn whole(pattern: &str) -> Result<Regex, String> {
    let mut reader = Reader { signs: pattern.chars().peekable(), made: String::new(), open: 0 };
    reader.flags()?;
    reader.expression()?;
    let bare = format!(r"\A(?:{})\z", reader.made);
    Regex::new(&bare).map_err(|error| format!("must be a regular expression: {error}"))
}

struct Reader<'a> {
    signs: Peekable<Chars<'a>>,
    made: String,
    open: usize,
}

/// An item of a class: a character or a nested class.
enum Item {
    Sign(char),
    Class(String),
}

impl Reader<'_> {
    fn eat(&mut self, text: &str) -> bool {
        let mut ahead = self.signs.clone();
        let found = text.chars().all(|sign| ahead.next() == Some(sign));
        if found {
            self.signs = ahead;
        }
        found
    }

    /// Reads the flags at the beginning, which apply to the whole expression.
    fn flags(&mut self) -> Result<(), String> {
        for flags in ["(?i)", "(?s)", "(?is)", "(?si)"] {
            if self.eat(flags) {
                self.made.push_str(flags);
                return Ok(());
            }
        }
        Ok(())
    }

    fn expression(&mut self) -> Result<(), String> {
        loop {
            if self.repeats()? {
                return Err("must have an item before each repetition".into());
            }
            let Some(sign) = self.signs.next() else { break };
            match sign {
                '(' => {
                    self.group()?;
                    continue;
                }
                ')' if self.open == 0 => return Err("must not close a group that is not open".into()),
                ')' => {
                    self.open -= 1;
                    self.made.push(')');
                }
                '|' | '^' => {
                    self.made.push(sign);
                    continue;
                }
                '$' => {
                    // Python's $ also matches before a final line break. At the end of an expression this
                    // makes no difference.
                    if !matches!(self.signs.peek(), None | Some(')' | '|')) {
                        return Err("must use $ only at an end".into());
                    }
                    self.made.push('$');
                    continue;
                }
                '.' => self.made.push('.'),
                '[' => self.class()?,
                '\\' if self.eat("A") => {
                    self.made.push_str(r"\A");
                    continue;
                }
                '\\' if self.eat("Z") => {
                    self.made.push_str(r"\z");
                    continue;
                }
                '\\' => self.escape()?,
                sign => self.literal(sign),
            }
            self.repetition()?;
        }
        match self.open {
            0 => Ok(()),
            _ => Err("must close its groups".into()),
        }
    }

    fn literal(&mut self, sign: char) {
        self.made.push_str(&code(sign));
    }

    fn group(&mut self) -> Result<(), String> {
        self.open += 1;
        if !self.eat("?") {
            self.made.push('(');
            return Ok(());
        }
        if self.eat(":") {
            self.made.push_str("(?:");
            return Ok(());
        }
        if self.eat("P<") {
            let name: String = std::iter::from_fn(|| self.signs.next_if(|sign| *sign != '>')).collect();
            self.signs.next();
            self.made.push_str(&format!("(?P<{name}>"));
            return Ok(());
        }
        Err("must only have groups of the forms (…), (?:…) and (?P<name>…), and flags i and s at the beginning: \
             look-around, references and other extensions are not supported"
            .into())
    }

    /// Reads the repetition after an item: `*`, `+`, `?` or `{m,n}`, followed by `?` if it is lazy.
    fn repetition(&mut self) -> Result<(), String> {
        if let Some(sign) = self.signs.next_if(|sign| "*+?".contains(*sign)) {
            self.made.push(sign);
        } else if !self.braces()? {
            return Ok(());
        }
        if self.signs.next_if_eq(&'?').is_some() {
            self.made.push('?');
        }
        if self.repeats()? { Err("must not repeat a repetition".into()) } else { Ok(()) }
    }

    /// Returns true if a repetition follows.
    fn repeats(&self) -> Result<bool, String> {
        let mut rest = Reader { signs: self.signs.clone(), made: String::new(), open: 0 };
        Ok(matches!(rest.signs.peek(), Some('*' | '+' | '?')) || rest.braces()?)
    }

    /// Reads `{m}`, `{m,}`, `{,n}` or `{m,n}`. Braces around anything else are literal.
    fn braces(&mut self) -> Result<bool, String> {
        let before = self.signs.clone();
        if !self.eat("{") {
            return Ok(false);
        }
        let inner: String =
            std::iter::from_fn(|| self.signs.next_if(|sign| sign.is_ascii_digit() || *sign == ',')).collect();
        let (least, most) = inner.split_once(',').unwrap_or((&inner, &inner));
        if inner.is_empty() || most.contains(',') || !self.eat("}") {
            self.signs = before;
            return Ok(false);
        }
        let comma = if inner.contains(',') { "," } else { "" };
        let (least, most) =
            (if least.is_empty() { "0" } else { least }, if comma.is_empty() { "" } else { most });
        self.made.push_str(&format!("{{{least}{comma}{most}}}"));
        Ok(true)
    }

    fn escape(&mut self) -> Result<(), String> {
        let made = match self.signs.next() {
            Some(sign @ ('b' | 'B')) => {
                return Err(format!(r"must not use \{sign}: Python has other word boundaries"));
            }
            Some(sign) => match self.escaped(sign)? {
                Item::Sign(sign) => code(sign),
                Item::Class(class) => format!("[{class}]"),
            },
            None => return Err(r"must not end in a single \".into()),
        };
        self.made.push_str(&made);
        Ok(())
    }

    /// Returns the meaning of an escape, within or outside a class.
    fn escaped(&mut self, sign: char) -> Result<Item, String> {
        Ok(match sign {
            'd' | 'D' => Item::Class(format!(r"\{sign}")),
            's' => Item::Class(SPACE.into()),
            'S' => Item::Class(format!("[^{SPACE}]")),
            'w' => Item::Class(WORD.into()),
            'W' => Item::Class(format!("[^{WORD}]")),
            'n' => Item::Sign('\n'),
            't' => Item::Sign('\t'),
            'r' => Item::Sign('\r'),
            'f' => Item::Sign('\x0c'),
            'v' => Item::Sign('\x0b'),
            'a' => Item::Sign('\x07'),
            'x' => Item::Sign(self.hexadecimal(2)?),
            'u' => Item::Sign(self.hexadecimal(4)?),
            'U' => Item::Sign(self.hexadecimal(8)?),
            sign if sign.is_ascii_alphanumeric() => {
                return Err(format!(r"must not use \{sign}, which is not supported"));
            }
            sign => Item::Sign(sign),
        })
    }

    fn hexadecimal(&mut self, digits: usize) -> Result<char, String> {
        let digit = |reader: &mut Self| reader.signs.next_if(char::is_ascii_hexdigit);
        let text: String = (0..digits).map_while(|_| digit(self)).collect();
        let sign = u32::from_str_radix(&text, 16).ok().and_then(char::from_u32);
        sign.filter(|_| text.len() == digits)
            .ok_or_else(|| format!("must have {digits} hexadecimal digits of a character"))
    }

    fn class(&mut self) -> Result<(), String> {
        let start = if self.eat("^") { "[^" } else { "[" };
        self.made.push_str(start);
        let mut first = true;
        while first || !self.eat("]") {
            first = false;
            let made = match self.item()? {
                Item::Class(class) => {
                    if self.range() {
                        return Err("must not begin a range with a class".into());
                    }
                    class
                }
                Item::Sign(low) if self.range() => match self.item()? {
                    Item::Sign(high) => format!("{}-{}", code(low), code(high)),
                    Item::Class(_) => return Err("must not end a range with a class".into()),
                },
                Item::Sign(sign) => code(sign),
            };
            self.made.push_str(&made);
        }
        self.made.push(']');
        Ok(())
    }

    /// Reads a minus that makes a range. A minus at the end of a class is literal.
    fn range(&mut self) -> bool {
        let mut ahead = self.signs.clone();
        let found = ahead.next() == Some('-') && ahead.next().is_some_and(|sign| sign != ']');
        if found {
            self.signs.next();
        }
        found
    }

    fn item(&mut self) -> Result<Item, String> {
        match self.signs.next() {
            Some('\\') => match self.signs.next() {
                Some('b') => Ok(Item::Sign('\x08')),
                Some(sign) => self.escaped(sign),
                None => Err(r"must not end in a single \".into()),
            },
            Some(sign) => Ok(Item::Sign(sign)),
            None => Err("must close its classes".into()),
        }
    }
}

/// Returns a literal character as an escape.
fn code(sign: char) -> String {
    format!(r"\x{{{:x}}}", u32::from(sign))
}
