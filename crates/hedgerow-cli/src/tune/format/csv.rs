//! CSV, with a header or without, separated by commas, semicolons or tabs.

use std::borrow::Cow;
use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use csv::{ByteRecord, ReaderBuilder};

use super::{Values, Wanted, nearest};
use crate::tune::bad::Why;
use crate::tune::error::Error;
use crate::tune::input::{Input, LONGEST};
use crate::tune::value::{Unit, time};

/// Columns by their names or their numbers.
#[derive(Debug)]
pub(in crate::tune) struct Csv {
    wanted: Wanted<String>,
}

/// Calls with each row's line and what stands on it.
pub(in crate::tune) type EachRow<'a> = dyn FnMut(u64, Result<Values<'_>, Why>) + 'a;

impl Csv {
    pub(super) fn new(wanted: Wanted<String>) -> Self {
        Self { wanted }
    }

    /// Reads every row.
    pub(in crate::tune) fn read(&self, input: Input, each: &mut EachRow<'_>) -> Result<(), Error> {
        let Input { name, reader, head } = input;
        let broken = |error: csv::Error| Error::Read { input: name.clone(), error: plain(error) };
        let since = Rc::new(Cell::new(0));
        let mut rows = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter(&head))
            .from_reader(Leash { reader, since: Rc::clone(&since) });
        let mut row = ByteRecord::new();
        if !rows.read_byte_record(&mut row).map_err(broken)? {
            return Ok(());
        }
        let columns = self.columns(&row, &name)?;
        if !self.is_header(&row, &columns) {
            each(1, values(&columns, &row));
        }
        loop {
            since.set(0);
            if !rows.read_byte_record(&mut row).map_err(broken)? {
                return Ok(());
            }
            let line = row.position().map_or(0, csv::Position::line);
            each(line, values(&columns, &row));
        }
    }

    /// Where the columns are, by the first row.
    fn columns(&self, row: &ByteRecord, input: &str) -> Result<Wanted<usize>, Error> {
        self.wanted.try_map(|name| {
            if let Some(index) = row.iter().position(|cell| tidy(cell) == name.as_bytes()) {
                return Ok(index);
            }
            match name.parse() {
                Ok(number) if (1..=row.len()).contains(&number) => Ok(number - 1),
                Ok(number) => {
                    let what = format!("no column {number}; the first row has {}", row.len());
                    Err(Error::Format { input: input.to_owned(), what })
                }
                Err(_) => Err(unknown(name, row, input)),
            }
        })
    }

    /// Whether the first row has names, not values.
    fn is_header(&self, row: &ByteRecord, columns: &Wanted<usize>) -> bool {
        let cell = row.get(columns.latency).unwrap_or_default();
        tidy(cell) == self.wanted.latency.as_bytes() && self.wanted.latency.parse::<f64>().is_err()
            || time(cell, Some(Unit::Ms)).is_err()
    }
}

/// No column has this name.
fn unknown(name: &str, row: &ByteRecord, input: &str) -> Error {
    let cells: Vec<_> = row.iter().map(|cell| String::from_utf8_lossy(tidy(cell))).collect();
    let near = nearest(name, cells.iter().map(AsRef::as_ref));
    Error::Missing { input: input.to_owned(), kind: "column", name: name.to_owned(), near }
}

fn values<'a>(columns: &Wanted<usize>, row: &'a ByteRecord) -> Result<Values<'a>, Why> {
    columns.try_map(|column| row.get(*column).map(Cow::Borrowed).ok_or(Why::Narrow))
}

/// A name without what surrounds it; the first one may have a byte order mark.
fn tidy(cell: &[u8]) -> &[u8] {
    cell.strip_prefix(b"\xef\xbb\xbf").unwrap_or(cell).trim_ascii()
}

/// What is most frequent on the first line.
fn delimiter(head: &[u8]) -> u8 {
    let first = head.split(|byte| *byte == b'\n').next().unwrap_or(head);
    let count = |delimiter: &u8| first.split(|byte| byte == delimiter).count();
    b"\t;,".iter().copied().max_by_key(count).unwrap_or(b',')
}

/// The error below the reader's.
fn plain(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        kind => io::Error::new(io::ErrorKind::InvalidData, format!("{kind:?}")),
    }
}

/// Ends the reading where one row has no end: an open quote must not swallow the memory.
struct Leash {
    reader: Box<dyn BufRead>,
    since: Rc<Cell<usize>>,
}

impl Read for Leash {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.since.get() > LONGEST {
            let what = "a row is longer than 1 MiB; is a quote left open?";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let read = self.reader.read(buffer)?;
        self.since.set(self.since.get() + read);
        Ok(read)
    }
}
