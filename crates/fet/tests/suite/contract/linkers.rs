//! Tests the laws of every linker and of its two sides, querier and data holder.

use fet_contract::{all, linkers};
use fet_core::linker::Linker;

#[test]
fn linkers_sort_links_stay_in_range_return_k_and_repeat() {
    all::<dyn Linker>().iter().for_each(linkers::returns_k_sorted_links_in_range_and_repeats);
}

#[test]
fn separately_built_sides_find_the_same_links() {
    all::<dyn Linker>().iter().for_each(linkers::separately_built_sides_find_the_same_links);
}

#[test]
fn linkers_refuse_wrong_and_missing_messages() {
    all::<dyn Linker>().iter().for_each(linkers::refuses_wrong_and_missing_messages);
}

#[test]
fn independent_linkers_link_each_query_separately() {
    let tested = all::<dyn Linker>().iter().filter(|slot| linkers::links_each_query_separately(slot)).count();
    assert!(tested >= 4, "nearest, edit, top1 and grid say so");
}

#[test]
fn linkers_refuse_wrong_keys_and_state_their_disclosure() {
    all::<dyn Linker>().iter().for_each(linkers::refuses_wrong_keys_and_states_its_disclosure);
}

#[test]
fn empty_keys_match_nothing() {
    let tested = all::<dyn Linker>().iter().filter(|slot| linkers::empty_keys_match_nothing(slot)).count();
    assert!(tested >= 3, "clk, edit and tfidf have a floor");
}
