/*
 * Patterns over one line, matched in bounded time: at most WLB_PATTERN_PROGRAM_MOST steps for each byte, whatever
 * pattern and line are. Every built-in format of stdout_line.h is one, and `--step-pattern` of a user.
 *
 * The syntax is that of Python's `re` and PCRE as far as an automaton has it: . [...] [^...] \d \w \s \D \W \S \b ^ $ |
 * ( ) (?: ) (?P<name> ) (?<name> ) * + ? {m} {m,} {m,n}, and *? +? ?? for the shortest. Backreferences, lookaround and
 * flags are refused: POSIX's regexec and backtracking matchers can take exponential time, and a line is matched while a
 * job runs.
 *
 * The matcher is that of Pike (Russ Cox, "Regular Expression Matching: the Virtual Machine Approach", 2009): threads
 * in the order of their priority, one for each place of the program. It finds what backtracking would find, but where
 * a repeated part can match nothing, as in (a*)*.
 */
#ifndef FOLLOW_PATTERN_H
#define FOLLOW_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "follow/pattern_program.h"
#include "libwlb/wlb.h"

/* The caller frees it. NULL with the place, the rule and the remedy where the text is no pattern. */
struct wlb_pattern *wlb_pattern_compile(const char *text, struct wlb_error *error);
void wlb_pattern_free(struct wlb_pattern *pattern); /* NULL allowed */

/* How many groups it has, with group 0; the name of one, "" where it has none. */
int wlb_pattern_groups(const struct wlb_pattern *pattern);
const char *wlb_pattern_group_name(const struct wlb_pattern *pattern, int group);

struct wlb_pattern_span {
	int begin, end; /* bytes of the line; -1: the group is not in the match */
};

/* Whether the pattern matches anywhere in the line, of less than 2^31 bytes; the leftmost match. */
bool wlb_pattern_match(const struct wlb_pattern *pattern, const char *line, size_t length,
                       struct wlb_pattern_span spans[WLB_PATTERN_GROUPS_MOST]);

#endif
