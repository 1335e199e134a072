"""Which test stands for which case of public reports: of processes (P), tools (T), filters (D13), loops (L).

A case says how a server or its transport breaks in practice. The tests named here play it; each exists.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

CASES: dict[str, tuple[str, ...]] = {
    # Processes and their pipes.
    "P01 a banner on standard output": (
        "client/test_manager_failures.py::test_noise_on_standard_output_is_counted_and_quoted",
        "client/test_odd_messages.py::test_what_makes_no_sense_is_counted_and_the_answer_behind_it_comes_through",
        "client/test_floods.py::test_noise_without_end_is_counted_and_the_answer_behind_it_is_found",
    ),
    "P02 exit at the start": (
        "client/test_manager_failures.py::test_exit_at_start_tells_the_exit_code_and_the_last_words",
    ),
    "P03 bytes that are no UTF-8": (
        "client/test_manager_failures.py::test_bytes_that_are_no_utf8_cost_one_line",
        "client/test_odd_messages.py::test_answers_of_careless_writers_are_understood",
    ),
    "P05 no answer to the handshake": (
        "client/test_manager_failures.py::test_silence_ends_at_the_connect_limit_and_leaves_no_process",
    ),
    "P06 ids come back as strings": (
        "client/test_manager_calls.py::test_ids_echoed_as_strings_find_their_calls",
        "client/test_odd_messages.py::test_answers_of_careless_writers_are_understood",
    ),
    "P08 an error without an id": (
        "client/test_manager_calls.py::test_an_error_without_an_id_reaches_the_only_call_that_waits",
        "client/test_manager_calls.py::test_an_error_without_an_id_is_nobodys_when_several_wait",
    ),
    "P09 malformed notifications": (
        "client/test_manager_failures.py::test_junk_notifications_are_survived",
        "client/test_odd_messages.py::test_malformed_notifications_are_mended_or_counted_and_never_quoted_in_the_log",
    ),
    "P12 death in mid-call": (
        "client/test_manager_failures.py::test_death_in_mid_call_fails_the_call_at_once_and_the_next_call_reconnects",
        "client/test_manager_failures.py::test_death_while_idle_is_noticed_and_the_next_call_reconnects",
        "client/test_manager_replay.py::test_a_write_is_never_repeated",
        "client/test_manager_offers.py::test_a_read_that_lost_its_server_is_repeated_once",
        "client/test_connection_faults.py::test_a_handle_and_its_lists_are_good_for_the_next_process_too",
    ),
    "P13 end of input and SIGTERM are ignored": (
        "client/test_manager_lifecycle.py::test_a_server_that_ignores_all_requests_to_end_is_killed",
    ),
    "P14 the launcher leaves, its child stays": (
        "client/test_manager_lifecycle.py::test_what_a_server_has_started_in_its_group_ends_with_it",
        "client/test_process.py::test_the_whole_group_ends_although_the_leader_left_politely",
    ),
    "P15 our process is killed": (
        "client/test_manager_processes.py::test_a_program_killed_hard_leaves_nothing_of_the_group",
    ),
    "P16 the server does not read": (
        "client/test_manager_calls.py::test_when_a_server_stops_reading_every_call_ends_at_its_limit_and_the_connection_is_recycled",
        "client/test_floods.py::test_a_server_that_asks_without_end_and_reads_no_answer_is_given_up",
    ),
    "P17 a huge line": (
        "client/test_manager_calls.py::test_a_line_over_the_frame_limit_fails_its_call_and_no_other",
        "client/test_manager_calls.py::test_a_line_without_end_costs_its_call_and_bounded_memory",
        "client/test_manager_offers.py::test_contents_over_the_frame_limit_fail_their_reading_and_no_other",
    ),
    "P18 standard error without a descriptor": (
        "client/test_manager_lifecycle.py::test_standard_streams_without_descriptors_are_no_obstacle",
    ),
    "P19 variables of the web process": (
        "client/test_process.py::test_only_harmless_variables_are_inherited",
        "client/test_process.py::test_named_variables_are_passed_and_the_servers_own_win",
    ),
    "P21 no such command, file or directory": (
        "client/test_manager_failures.py::test_missing_command_missing_directory_and_unrunnable_file_have_three_messages",
        "client/test_process.py::test_a_missing_interpreter_is_not_taken_for_a_missing_command",
    ),
    "P22 closed by another task than opened": (
        "client/test_manager_lifecycle.py::test_close_from_several_threads_during_calls_and_attempts",
        "client/test_connection_faults.py::test_a_link_that_falls_apart_is_lost_and_not_stopped",
    ),
    "P23 a time-out around connecting": (
        "client/test_manager_failures.py::test_silence_ends_at_the_connect_limit_and_leaves_no_process",
        "client/test_manager_lifecycle.py::test_a_scoped_connection_that_fails_leaves_nothing",
    ),
    "P24 used from another event loop": (
        "client/test_manager_lifecycle.py::test_coroutines_of_several_loops_share_one_connection",
        "client/test_manager_lifecycle.py::test_a_loop_per_call_is_fine",
    ),
    "P25 a slow start": (
        "client/test_connection_faults.py::test_a_slow_start_is_waited_for_and_delays_nobody_else",
    ),
    "P26 one server spoils the group": (
        "client/test_manager_many.py::test_fourteen_are_ready_and_six_explained",
    ),
    "P27 two first calls at once": (
        "client/test_manager_lifecycle.py::test_twenty_threads_racing_the_first_use_get_one_process",
        "client/test_manager_lifecycle.py::test_all_who_wait_get_the_error_of_a_failed_attempt_each_a_copy_of_its_own",
    ),
    "P28 a session that was never entered": (
        "client/test_connection_faults.py::test_a_link_that_is_not_open_refuses_and_has_sent_nothing",
    ),
    "P29 descriptors run out": (
        "client/test_manager_lifecycle.py::test_connecting_a_hundred_times_leaves_no_descriptor",
        "client/test_manager_lifecycle.py::test_failing_to_connect_leaves_no_descriptor",
        "client/test_manager_processes.py::test_a_process_without_descriptors_fails_to_start_servers_until_it_has_some",
    ),
    "P30 the probe is deadly": (
        "client/test_connection_faults.py::test_a_server_that_dies_of_the_probe_is_started_once_more",
        "client/test_connection_faults.py::test_a_server_that_dies_before_it_has_read_anything_is_started_once",
    ),
    "P31 standard error is lost, or floods": (
        "client/test_manager_events.py::test_a_flood_on_standard_error_is_kept_in_a_ring_and_told_in_full",
        "client/test_stdio_channel.py::test_secrets_in_garbage_and_standard_error_are_masked",
    ),
    "P32 arguments and variables of the wrong kind": (
        "test_validators.py::test_args_are_strings_without_nul",
        "test_validators.py::test_env_maps_names_to_strings",
    ),
    # Tools, schemas, results.
    "T01 a cursor that never advances": (
        "client/test_manager_listings.py::test_a_listing_without_end_is_stopped_early",
        "client/test_manager_offers.py::test_a_listing_without_end_is_stopped_early",
    ),
    "T02 tools after the first page": ("client/test_manager_listings.py::test_all_pages_are_read",),
    "T04 two tools of one name": (
        "client/test_manager_listings.py::test_one_bad_tool_does_not_hide_the_good_ones",
        "client/test_manager_offers.py::test_one_bad_entry_does_not_hide_the_good_ones",
    ),
    "T05 shortened names collide": (
        "client/test_manager_tools.py::test_long_names_that_begin_alike_stay_apart_and_lead_to_their_tools",
        "services/test_toolset.py::test_odd_and_long_names_have_public_names_that_lead_back",
    ),
    "T06 names beyond 64 characters": (
        "client/test_manager_tools.py::test_long_names_that_begin_alike_stay_apart_and_lead_to_their_tools",
        "services/test_toolset.py::test_odd_and_long_names_have_public_names_that_lead_back",
    ),
    "T07 names that providers refuse": (
        "client/test_manager_listings.py::test_odd_names_are_called_by_their_public_names",
        "client/test_leniency.py::test_a_tool_without_a_usable_name_is_left_out",
        "services/test_toolset.py::test_odd_and_long_names_have_public_names_that_lead_back",
    ),
    "T08 nothing is left beside the prefix": (
        "client/test_manager_tools.py::test_long_names_that_begin_alike_stay_apart_and_lead_to_their_tools",
        "services/test_toolset.py::test_odd_and_long_names_have_public_names_that_lead_back",
    ),
    "T09 an input schema that is none": (
        "client/test_manager_listings.py::test_each_kind_of_bad_tool_leaves_the_good_one_and_is_told",
        "client/test_leniency_mutations.py::test_no_single_wrong_value_costs_more_than_itself",
        "client/test_manager_tools.py::test_what_php_writes_for_an_empty_object_is_one",
        "services/test_toolset.py::test_odd_schemas_cost_their_own_tools_alone",
    ),
    "T11 an output schema without a type": (
        "client/test_leniency.py::test_an_unusable_output_schema_costs_the_schema_not_the_tool",
        "client/test_leniency.py::test_the_new_era_allows_output_schemas_of_any_type",
        "services/test_toolset.py::test_odd_schemas_cost_their_own_tools_alone",
    ),
    "T12 schemas that refer to themselves": (
        "toolsets/test_arguments.py::test_recursive_schemas_are_followed",
        "toolsets/test_providers.py::test_depth_without_end_is_left_out",
        "client/test_manager_tools.py::test_schemas_come_out_as_the_server_wrote_them",
        "services/test_toolset.py::test_odd_schemas_cost_their_own_tools_alone",
    ),
    "T13 enums of integers and null": (
        "toolsets/test_arguments.py::test_choices_of_integers_and_null_are_the_originals",
        "toolsets/test_providers.py::test_choices_that_the_type_forbids_are_not_shown_but_the_check_is_the_originals",
        "client/test_manager_tools.py::test_schemas_come_out_as_the_server_wrote_them",
        "services/test_toolset.py::test_odd_schemas_cost_their_own_tools_alone",
    ),
    "T14 a mistake in a schema": (
        "toolsets/test_arguments.py::test_a_schema_that_is_no_use_checks_nothing_and_says_so",
        "toolsets/test_providers.py::test_one_tool_that_cannot_be_said_is_left_out_with_a_warning",
        "client/test_manager_tools.py::test_a_mistake_in_a_schema_is_told_and_the_tool_can_be_called",
        "client/test_manager_tools.py::test_no_schema_makes_the_client_fetch_anything",
    ),
    "T16 promised structure is missing": (
        "client/test_manager_calls.py::test_a_breach_of_the_output_schema_is_a_warning_for_the_tool_has_run",
    ),
    "T17 an error result that breaks the schema": (
        "client/test_manager_tools.py::test_the_real_reason_of_a_failure_reaches_the_caller",
    ),
    "T18 a hidden listing behind a call": (
        "client/test_manager_tools.py::test_a_call_is_one_request_whatever_is_wrong_with_the_other_tools",
    ),
    "T19 structure without content": (
        "client/test_manager_tools.py::test_empty_results_are_successes_and_structure_alone_is_text",
        "services/test_toolset.py::test_structured_content_alone_is_read_as_json",
    ),
    "T21 unknown blocks": (
        "client/test_manager_calls.py::test_unknown_and_malformed_blocks_become_text",
        "client/test_manager_offers.py::test_malformed_contents_are_mended_told_and_kept_raw",
        "services/test_toolset.py::test_unknown_blocks_are_told_and_cost_nothing",
    ),
    "T22 an empty result": (
        "client/test_manager_tools.py::test_empty_results_are_successes_and_structure_alone_is_text",
    ),
    "T23 bad progress": ("client/test_manager_tools.py::test_only_good_progress_reaches_the_callback",),
    "T24 questions of the server": (
        "client/test_manager_tools.py::test_what_a_server_asks_during_a_call_is_refused_and_the_call_goes_on",
        "client/test_floods.py::test_a_burst_of_questions_is_answered_or_refused_one_by_one",
    ),
    "T26 a rate limit within a result": (
        "client/test_manager_tools.py::test_a_rate_limit_that_is_told_as_a_result_is_passed_on_as_it_is",
    ),
    "T27 the list has changed": (
        "client/test_manager_listings.py::test_a_changed_list_is_read_again_once_for_many_changes",
        "client/test_floods.py::test_ten_thousand_changes_are_read_a_few_times",
        "client/test_connection_faults.py::test_a_handle_and_its_lists_are_good_for_the_next_process_too",
    ),
    "T28 bad base64": (
        "client/test_manager_tools.py::test_bad_base64_is_passed_on_and_never_decoded",
        "client/test_manager_offers.py::test_malformed_contents_are_mended_told_and_kept_raw",
    ),
    "T29 only structured content is validated": (
        "client/test_manager_tools.py::test_only_the_structured_content_is_held_to_the_output_schema",
    ),
    # What is hidden cannot be called.
    "D13 a filter that hides, and does not forbid": (
        "services/test_toolset_policies.py::test_a_filter_holds_at_each_level_under_each_spelling",
        "services/test_toolset_async.py::test_what_is_refused_is_refused_on_a_loop_too",
        "toolsets/test_rules.py::test_blocked_beats_allowed_at_every_level",
        "client/test_found_names.py::test_a_tool_that_is_blocked_now_is_not_called_any_more",
    ),
    # The loop of a model that calls tools.
    "L01 arguments that are no JSON": (
        "agents/test_loop_cases.py::test_arguments_that_are_no_json_are_told_the_model_and_not_sent",
        "agents/test_provider_cases.py::test_of_parallel_calls_each_gets_its_answer_whatever_is_wrong_with_the_others",
    ),
    "L02 bad JSON passed off as no arguments": (
        "agents/test_loop_cases.py::test_arguments_that_are_no_json_are_told_the_model_and_not_sent",
    ),
    "L05 a tool that there is not": (
        "agents/test_loop_cases.py::test_an_unknown_tool_is_told_with_the_names_that_there_are",
        "agents/test_loop_cases.py::test_many_unknown_tools_in_a_row_end_at_the_limit_of_rounds",
        "agents/test_loop_cases.py::test_a_list_of_valid_names_is_bounded",
        "agents/test_loop_cases.py::test_the_name_of_a_tool_on_its_server_will_do",
    ),
    "L06 a loop without end": (
        "agents/test_loop_cases.py::test_a_loop_without_end_ends_at_the_limit_and_is_no_answer",
        "agents/test_loop_cases.py::test_a_call_repeated_over_and_over_is_pointed_out",
        "agents/test_provider_cases.py::test_a_run_without_end_stops_at_its_rounds_and_can_be_continued",
    ),
    "L07 an empty result": (
        "agents/test_loop_cases.py::test_an_empty_result_is_something_to_read",
        "agents/test_provider_cases.py::test_empty_and_endless_results_make_requests_that_are_taken",
    ),
    "L08 one of several calls fails": (
        "agents/test_loop_cases.py::test_one_of_several_calls_fails_and_all_are_answered_in_order",
        "agents/test_provider_cases.py::test_of_parallel_calls_each_gets_its_answer_whatever_is_wrong_with_the_others",
    ),
    "L10 structured content alone": (
        "services/test_toolset.py::test_structured_content_alone_is_read_as_json",
        "toolsets/test_rendering.py::test_without_text_the_structure_is_told_as_json",
    ),
    "L11 images and other files": (
        "agents/test_surroundings.py::test_images_are_parts_and_other_files_are_notes",
        "agents/test_surroundings.py::test_a_provider_takes_what_a_tool_returned",
        "agents/test_provider_cases.py::test_images_are_seen_and_other_binary_content_is_told_of",
    ),
    "L12 one bad schema": (
        "agents/test_offering.py::test_a_tool_that_a_provider_cannot_be_told_of_is_left_out_alone",
        "agents/test_offered_tools.py::test_tools_that_cannot_be_said_are_left_out_alone",
    ),
    "L13 two tools of one name": (
        "agents/test_provider_cases.py::test_tools_of_one_name_on_two_servers_are_two_tools",
    ),
    "L14 a server that dies in mid run": (
        "agents/test_surroundings.py::test_a_server_that_dies_is_told_the_model_and_the_run_goes_on",
        "agents/test_crashes.py::test_a_write_of_a_worker_that_is_gone_is_not_repeated_and_said_to_be_unknown",
        "agents/test_provider_cases.py::test_a_server_that_dies_in_a_call_is_an_answer_and_the_run_goes_on",
    ),
    "L15 a very long result": (
        "agents/test_loop_cases.py::test_a_huge_result_is_cut_and_marked",
        "agents/test_provider_cases.py::test_empty_and_endless_results_make_requests_that_are_taken",
    ),
}


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((TESTS / path).read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


@pytest.mark.parametrize("case", CASES)
def test_the_tests_of_each_case_exist(case: str):
    assert CASES[case]
    for place in CASES[case]:
        path, _, name = place.partition("::")
        assert name in names_in(path), place
