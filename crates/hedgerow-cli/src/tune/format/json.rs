//! JSON Lines: one object a line.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{Values, Wanted, nearest};
use crate::tune::bad::Why;

/// How deep names are looked for.
const DEPTH: usize = 4;

/// Fields by their dotted names.
#[derive(Debug)]
pub(in crate::tune) struct Json {
    wanted: Wanted<String>,
}

impl Json {
    pub(super) fn new(wanted: Wanted<String>) -> Self {
        Self { wanted }
    }

    pub(super) fn find<'a>(&self, line: &'a [u8]) -> Result<Values<'a>, Why> {
        let object = parse(line)?;
        self.wanted.try_map(|path| {
            let value = lookup(&object, path).ok_or(Why::NoField)?;
            match value {
                Value::Number(number) => Ok(Cow::Owned(number.to_string().into_bytes())),
                Value::String(text) => Ok(Cow::Owned(text.clone().into_bytes())),
                Value::Bool(flag) => Ok(Cow::Owned(flag.to_string().into_bytes())),
                Value::Null => Err(Why::Nothing),
                Value::Array(_) | Value::Object(_) => Err(Why::NoText),
            }
        })
    }

    /// The first field that the line lacks, and the nearest that it has.
    pub(super) fn missing(&self, line: &[u8]) -> Option<(String, Option<String>)> {
        let object = parse(line).ok()?;
        let path = self.wanted.each().find(|path| lookup(&object, path).is_none())?;
        let mut names = Vec::new();
        collect(&object, "", DEPTH, &mut names);
        Some((path.clone(), nearest(path, names.iter().map(String::as_str))))
    }
}

fn parse(line: &[u8]) -> Result<Map<String, Value>, Why> {
    serde_json::from_slice(line).map_err(|_| Why::NotJson)
}

/// The field of this name, or the one that its dots lead to.
fn lookup<'a>(object: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    if let Some(value) = object.get(path) {
        return Some(value);
    }
    path.match_indices('.').find_map(|(dot, _)| match object.get(&path[..dot]) {
        Some(Value::Object(inner)) => lookup(inner, &path[dot + 1..]),
        _ => None,
    })
}

/// The dotted names of all fields.
fn collect(object: &Map<String, Value>, prefix: &str, depth: usize, names: &mut Vec<String>) {
    for (key, value) in object {
        let name = format!("{prefix}{key}");
        if let (Value::Object(inner), 1..) = (value, depth) {
            collect(inner, &format!("{name}."), depth - 1, names);
        }
        names.push(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(field: &str) -> Json {
        Json::new(Wanted { latency: field.to_owned(), key: None, pair: None, times: None })
    }

    #[test]
    fn dots_lead_into_objects_and_may_be_part_of_a_name() {
        for (field, line) in [
            ("took", r#"{"took": 1.5}"#),
            ("a.b", r#"{"a": {"b": 1.5}}"#),
            ("a.b", r#"{"a.b": "1.5"}"#),
            ("a.b.c", r#"{"a.b": {"c": 1.5}}"#),
        ] {
            let found = json(field).find(line.as_bytes()).unwrap();
            assert_eq!(*found.latency, *b"1.5", "{line}");
        }
    }

    #[test]
    fn a_missing_field_is_told_with_the_nearest() {
        let line = br#"{"request": {"took_ms": 1}, "id": 7}"#;
        assert_eq!(json("request.took").find(line), Err(Why::NoField));
        let near = Some("request.took_ms".to_owned());
        assert_eq!(json("request.took").missing(line), Some(("request.took".to_owned(), near)));
        assert_eq!(json("a").find(b"{\"a\": null}"), Err(Why::Nothing));
        assert_eq!(json("a").find(b"{\"a\": [1]}"), Err(Why::NoText));
        assert_eq!(json("a").find(b"[1]"), Err(Why::NotJson));
    }
}
