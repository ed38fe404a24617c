//! Help, the version, wrong arguments: what belongs to no command.

use crate::run::{abandoned, hedgerow};

#[test]
fn without_arguments_it_explains_itself() {
    let bare = hedgerow(&[], "");
    assert_eq!((bare.status, bare.err.as_str()), (Some(0), ""));
    for word in ["demo", "replay", "Examples:", "Exit status:"] {
        assert!(bare.out.contains(word), "{word}: {}", bare.out);
    }
    assert_eq!(bare.out, hedgerow(&["--help"], "").out);
}

#[test]
fn every_command_has_help_with_examples() {
    for command in ["demo", "replay", "tune"] {
        let help = hedgerow(&[command, "--help"], "");
        assert_eq!(help.status, Some(0));
        assert!(help.out.contains("Examples:\n  hedgerow "), "{}", help.out);
        assert!(help.out.contains("Exit status"), "{}", help.out);
    }
}

#[test]
fn it_knows_its_version() {
    let version = hedgerow(&["--version"], "");
    assert_eq!(version.status, Some(0));
    let expected = concat!("hedgerow ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(version.out, expected);
}

#[test]
fn wrong_arguments_are_refused_with_status_2() {
    let table: [(&[&str], &str); 4] = [
        (&["repaly"], "'replay'"),
        (&["replay", "--jsno"], "'--json'"),
        (&["replay", "--front", "threads"], "[possible values: async, engine, stream, blocking]"),
        (&["replay", "--json=yes"], "unexpected value 'yes'"),
    ];
    for (args, hint) in table {
        let refused = hedgerow(args, "");
        assert_eq!((refused.status, refused.out.as_str()), (Some(2), ""));
        assert!(refused.err.contains(hint), "{args:?}: {}", refused.err);
    }
}

#[test]
fn a_reader_who_leaves_before_the_help_is_no_failure() {
    let ran = abandoned(&["--help"]);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
}

#[test]
fn a_mark_of_the_byte_order_costs_no_line() {
    for (args, lines) in [
        (&["tune", "--unit", "ms"][..], "5\n6\n"),
        (&["tune", "--unit", "ms", "--field", "took"], "{\"took\":5}\n{\"took\":6}\n"),
        (&["tune", "--unit", "ms", "--column", "took"], "took\n5\n6\n"),
    ] {
        let ran = hedgerow(args, format!("\u{feff}{lines}"));
        assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""), "{args:?}");
        assert!(ran.out.contains("From 2 latencies"), "{args:?}: {}", ran.out);
    }
}
