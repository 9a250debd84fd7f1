#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/options.h"

struct values {
	bool drain;
	const char *file, *mode, *kind;
	int colour;
	int nodes;
	int64_t tokens;
	double ratio;
	struct wlb_option_list paths, pair;
	char **command;
};

#define FIELD(name) offsetof(struct values, name)

static const struct wlb_option rows[] = {
	{WLB_OPTION(FLAG, "drain", FIELD(drain), NULL, "to the end")},
	{WLB_OPTION(TEXT, "file", FIELD(file), "FILE", "of input"), .letter = 'f'},
	{WLB_OPTION(TEXT, "mode", FIELD(mode), NULL, "how"), .choices = "slow|fast"},
	{WLB_OPTION(TEXT, "kind", FIELD(kind), "KIND", "which"), .choices = "A|B", .open = true, .initial = "A"},
	{WLB_OPTION(CHOICE, "colour", FIELD(colour), NULL, "of the line"), .choices = "red|green|blue",
         .initial = "green"},
	{WLB_OPTION(INT, "nodes", FIELD(nodes), "N", "how many, such as 4"), .required = true, .min = 1, .max = 9},
	{WLB_OPTION(INT64, "tokens", FIELD(tokens), "N", "at most"), .max = WLB_OPTION_UNBOUNDED, .initial = "7"},
	{WLB_OPTION(REAL, "ratio", FIELD(ratio), "X", "share of it"), .max = 1, .initial = "0.5", .rule = "a share"},
	{WLB_OPTION(LIST, "path", FIELD(paths), "DIR", "of data")},
	{WLB_OPTION(LIST, "pair", FIELD(pair), "FROM TO", "of times"), .words = 2},
	{WLB_OPTION(VERSION, "version", 0, NULL, "print the version")},
	{WLB_OPTION(LIST, NULL, FIELD(paths), "DIR...", "more data")},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]), WORDS = 16 };

static const struct wlb_option_table table = {
	.command = "tool do", .about = "Does it.", .options = rows, .count = ROWS};

/* The table with another row for the arguments. */
static struct wlb_option_table with_argument(struct wlb_option copy[ROWS], const struct wlb_option *argument)
{
	memcpy(copy, rows, sizeof(rows));
	copy[ROWS - 1] = *argument;
	struct wlb_option_table other = table;
	other.options = copy;
	return other;
}

/* Parses "tool" and the words of `line`; the texts stay in `line`. */
static int parse(const struct wlb_option_table *of, char *line, struct values *values, struct wlb_error *error)
{
	char *argv[WORDS] = {"do"};
	int argc = 1;
	*values = (struct values){0};
	for (char *word; (word = strsep(&line, " ")) != NULL;)
		argv[argc++] = word;
	return wlb_options_parse(of, argc, argv, values, error);
}

static void assert_refused(const struct wlb_option_table *of, const char *line, const char *message)
{
	struct values values;
	struct wlb_error error = {0};
	char *copy = strdup(line);
	assert_int_equal(parse(of, copy, &values, &error), -1);
	assert_string_equal(error.message, message);
	wlb_options_free(of, &values);
	free(copy);
}

/* An option of two words takes them each time, and nothing of what follows. */
static void options_of_several_words(void **state)
{
	struct values v;
	char line[] = "a --pair 1 2 b --nodes 4 --pair=3 -4 c";
	assert_int_equal(parse(&table, line, &v, NULL), WLB_OPTIONS_READ);
	const char *const pair[] = {"1", "2", "3", "-4"}, *const paths[] = {"a", "b", "c"};
	assert_int_equal(v.pair.count, 4);
	for (int i = 0; i < 4; i++)
		assert_string_equal(v.pair.texts[i], pair[i]);
	assert_int_equal(v.paths.count, 3);
	for (int i = 0; i < 3; i++)
		assert_string_equal(v.paths.texts[i], paths[i]);
	assert_int_equal(v.nodes, 4);
	wlb_options_free(&table, &v);
	assert_refused(&table, "--nodes 4 --pair 1", "option '--pair' needs 2 values, FROM TO; see 'tool do --help'");
	assert_refused(&table, "--pair 1 --nodes 4", "option '--pair' needs 2 values, FROM TO; see 'tool do --help'");
	(void)state;
}

static void values_and_defaults_are_set(void **state)
{
	struct values v;
	char none[] = "--nodes 4", all[] = "--drain --file f --mode=fast --kind other --colour blue --nodes 9 --tokens "
					   "99999999999 --ratio 1e-3";
	assert_int_equal(parse(&table, none, &v, NULL), WLB_OPTIONS_READ);
	assert_false(v.drain);
	assert_null(v.file);
	assert_string_equal(v.kind, "A");
	assert_true(v.colour == 1 && v.nodes == 4 && v.tokens == 7 && v.ratio == 0.5);
	assert_true(v.paths.count == 0 && v.paths.texts == NULL);
	assert_int_equal(parse(&table, all, &v, NULL), WLB_OPTIONS_READ);
	assert_true(v.drain);
	assert_string_equal(v.file, "f");
	assert_string_equal(v.mode, "fast");
	assert_string_equal(v.kind, "other");
	assert_true(v.colour == 2 && v.nodes == 9 && v.tokens == 99999999999 && v.ratio == 1e-3);
	(void)state;
}

static void options_and_arguments_of_a_list_keep_their_order(void **state)
{
	struct values v;
	char line[] = "a --path b c --nodes 1 --path=d -- --e";
	assert_int_equal(parse(&table, line, &v, NULL), WLB_OPTIONS_READ);
	assert_int_equal(v.paths.count, 5);
	const char *const names[] = {"a", "b", "c", "d", "--e"};
	for (int i = 0; i < 5; i++)
		assert_string_equal(v.paths.texts[i], names[i]);
	assert_null(v.paths.texts[5]);
	wlb_options_free(&table, &v);
	(void)state;
}

static void a_letter_stands_for_its_option(void **state)
{
	struct values v;
	char apart[] = "--nodes 1 -f in", joined[] = "-fin a --nodes 1";
	assert_int_equal(parse(&table, apart, &v, NULL), WLB_OPTIONS_READ);
	assert_string_equal(v.file, "in");
	assert_int_equal(parse(&table, joined, &v, NULL), WLB_OPTIONS_READ);
	assert_string_equal(v.file, "in");
	assert_int_equal(v.paths.count, 1);
	wlb_options_free(&table, &v);
	assert_refused(&table, "--nodes 1 -f", "option '-f' needs a value; see 'tool do --help'");
	(void)state;
}

static void an_earlier_name_is_taken_too(void **state)
{
	struct values v;
	char line[] = "--nodes 1 --mode fast";
	assert_int_equal(parse(&table, line, &v, NULL), WLB_OPTIONS_READ);
	assert_string_equal(v.mode, "fast");
	assert_refused(&table, "--nodes 1 --mode no", "--mode 'no': must be slow or fast");
	(void)state;
}

static void a_command_ends_the_options(void **state)
{
	static const struct wlb_option argument = {WLB_OPTION(COMMAND, NULL, FIELD(command), "COMMAND", "what to run"),
	                                           .required = true};
	struct wlb_option copy[ROWS];
	struct wlb_option_table of = with_argument(copy, &argument);
	struct values v;
	char line[] = "--nodes 2 run --nodes 3", dashes[] = "--nodes 2 -- --drain";
	char *words[WORDS] = {"do", "--nodes", "2", "run", "--nodes", "3", NULL};
	v = (struct values){0};
	assert_int_equal(wlb_options_parse(&of, 6, words, &v, NULL), WLB_OPTIONS_READ);
	assert_int_equal(v.nodes, 2);
	assert_ptr_equal(v.command, words + 3);
	assert_int_equal(parse(&of, line, &v, NULL), WLB_OPTIONS_READ);
	assert_int_equal(parse(&of, dashes, &v, NULL), WLB_OPTIONS_READ);
	assert_false(v.drain);
	assert_refused(&of, "--nodes 2", "COMMAND is needed: what to run; see 'tool do --help'");
	(void)state;
}

static void one_argument_or_none_is_one_or_none(void **state)
{
	static const struct wlb_option one = {WLB_OPTION(TEXT, NULL, FIELD(file), "RUN", "a job's id"),
	                                      .required = true};
	static const struct wlb_option choice = {WLB_OPTION(CHOICE, NULL, FIELD(colour), NULL, "where to"),
	                                         .choices = "up|down"};
	struct wlb_option copy[ROWS];
	struct wlb_option_table of = with_argument(copy, &one);
	assert_refused(&of, "--nodes 2", "RUN is needed: a job's id; see 'tool do --help'");
	assert_refused(&of, "a --nodes 2 b", "'b': one argument is taken; see 'tool do --help'");
	of = with_argument(copy, &choice);
	assert_refused(&of, "--nodes 2 left", "argument 'left': must be up or down");
	copy[ROWS - 1].required = true;
	assert_refused(&of, "--nodes 2", "up or down is needed: where to; see 'tool do --help'");
	of.count--;
	assert_refused(&of, "--nodes 2 x", "'x': no argument is taken; see 'tool do --help'");
	(void)state;
}

static void errors_name_option_value_rule_and_remedy(void **state)
{
	assert_refused(&table, "--file", "option '--file' needs a value; see 'tool do --help'");
	assert_refused(&table, "--file=", "--file '': must be a text that is not empty");
	assert_refused(&table, "--bogus", "option '--bogus' is unknown or ambiguous; see 'tool do --help'");
	assert_refused(&table, "-x", "option '-x' is unknown or ambiguous; see 'tool do --help'");
	assert_refused(&table, "--drain=1", "option '--drain=1' takes no value; see 'tool do --help'");
	assert_refused(&table, "--help=me", "option '--help=me' takes no value; see 'tool do --help'");
	assert_refused(&table, "--mode fas", "--mode 'fas': must be slow or fast");
	assert_refused(&table, "--colour reds", "--colour 'reds': must be red, green or blue");
	assert_refused(&table, "--nodes 10", "--nodes '10': must be a whole number from 1 to 9");
	assert_refused(&table, "--ratio 2", "--ratio '2': must be a share");
	assert_refused(&table, "", "--nodes is needed: how many, such as 4; see 'tool do --help'");
	(void)state;
}

static void help_and_version_are_asked_for_whatever_is_missing(void **state)
{
	struct values v;
	char longer[] = "--help", letter[] = "-h", man[] = "--help=man", completion[] = "--help=completion";
	char synopsis[] = "--help=synopsis", version[] = "--version";
	assert_int_equal(parse(&table, synopsis, &v, NULL), WLB_OPTIONS_SYNOPSIS);
	assert_int_equal(parse(&table, version, &v, NULL), WLB_OPTIONS_VERSION);
	assert_int_equal(parse(&table, longer, &v, NULL), WLB_OPTIONS_HELP);
	assert_int_equal(parse(&table, letter, &v, NULL), WLB_OPTIONS_HELP);
	assert_int_equal(parse(&table, man, &v, NULL), WLB_OPTIONS_MAN);
	assert_int_equal(parse(&table, completion, &v, NULL), WLB_OPTIONS_COMPLETION);
	(void)state;
}

static void assert_prints(const struct wlb_option_table *of, enum wlb_options_asked what, const char *text)
{
	char *printed;
	size_t size;
	FILE *out = open_memstream(&printed, &size);
	assert_non_null(out);
	wlb_options_print(of, what, out);
	fclose(out);
	if (strstr(printed, text) == NULL)
		print_error("%s\nis missing in:\n%s", text, printed);
	assert_non_null(strstr(printed, text));
	free(printed);
}

static void help_has_usage_values_and_defaults(void **state)
{
	assert_prints(&table, WLB_OPTIONS_HELP,
	              "Usage: tool do --nodes N [OPTIONS] [DIR...]\n\nDoes it.\n\n  --drain ");
	assert_prints(&table, WLB_OPTIONS_HELP,
	              "\n  --colour red|green|blue\n                          of the line (default green)\n");
	assert_prints(&table, WLB_OPTIONS_HELP, "\n  --nodes N               how many, such as 4 (required)\n");
	assert_prints(&table, WLB_OPTIONS_HELP, "\n  --mode slow|fast        how\n");
	assert_prints(&table, WLB_OPTIONS_HELP, "\n  DIR...                  more data\n");
	assert_prints(&table, WLB_OPTIONS_HELP, "\n  -f, --file FILE         of input\n");
	assert_prints(&table, WLB_OPTIONS_HELP, "\n  --version               print the version\n");
	assert_prints(&table, WLB_OPTIONS_VERSION, "tool do " WLB_VERSION "\n");
	(void)state;
}

static void long_texts_are_wrapped(void **state)
{
	struct wlb_option row = {
		.name = "x",
		.kind = WLB_OPTION_FLAG,
		.heading = "Group",
		.help = "0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 01234567 end"};
	struct wlb_option_table of = {.command = "t", .about = "Line.\nNext.", .options = &row, .count = 1};
	assert_prints(&of, WLB_OPTIONS_HELP,
	              "Usage: t [OPTIONS]\n\nLine.\nNext.\n\nGroup:\n  --x                     0123456789 ");
	assert_prints(&of, WLB_OPTIONS_HELP, " 01234567\n                          end\n");
	assert_prints(&of, WLB_OPTIONS_MAN, ".PP\n\\fBGroup\\fR\n.TP\n\\fB\\-\\-x\\fR\n0123456789 ");
	(void)state;
}

static void the_manual_page_is_troff(void **state)
{
	struct wlb_option row = {.name = "re-do",
	                         .kind = WLB_OPTION_TEXT,
	                         .value = "A\\B",
	                         .help = "config.json, as with --no-kill, or 'x\\y'"};
	struct wlb_option_table of = {.command = "t", .about = "", .options = &row, .count = 1};
	assert_prints(&of, WLB_OPTIONS_MAN,
	              ".TP\n\\fB\\-\\-re\\-do\\fR \\fIA\\eB\\fR\nconfig.json, as with \\fB\\-\\-no\\-kill\\fR, or "
	              "'x\\ey'.\n");
	assert_prints(&table, WLB_OPTIONS_MAN, "\\fB\\-\\-nodes\\fR \\fIN\\fR\nHow many, such as 4 (required).\n");
	assert_prints(&table, WLB_OPTIONS_MAN, "\\fB\\-f\\fR, \\fB\\-\\-file\\fR \\fIFILE\\fR\nOf input.\n");
	assert_prints(&table, WLB_OPTIONS_SYNOPSIS,
	              "\\fBtool do\\fR \\fB\\-\\-nodes\\fR \\fIN\\fR [\\fIOPTIONS\\fR] [\\fIDIR...\\fR]\n");
	row.help = "'all' of it";
	assert_prints(&of, WLB_OPTIONS_MAN, "\n\\&'all' of it.\n");
	(void)state;
}

static void completion_offers_options_choices_and_folders(void **state)
{
	assert_prints(&table, WLB_OPTIONS_COMPLETION,
	              "\t'tool do') words='--drain --file --mode --kind --colour --nodes --tokens --ratio --path "
	              "--pair --version --help' ;;\n");
	assert_prints(&table, WLB_OPTIONS_COMPLETION, "\t'tool do --file' | 'tool do -f') ;;\n");
	assert_prints(&table, WLB_OPTIONS_COMPLETION, "\t'tool do --kind') words='A B' ;;\n");
	assert_prints(&table, WLB_OPTIONS_COMPLETION, "\t'tool do --path') action=directory ;;\n");
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_of_several_words),
		cmocka_unit_test(values_and_defaults_are_set),
		cmocka_unit_test(options_and_arguments_of_a_list_keep_their_order),
		cmocka_unit_test(a_letter_stands_for_its_option),
		cmocka_unit_test(an_earlier_name_is_taken_too),
		cmocka_unit_test(a_command_ends_the_options),
		cmocka_unit_test(one_argument_or_none_is_one_or_none),
		cmocka_unit_test(errors_name_option_value_rule_and_remedy),
		cmocka_unit_test(help_and_version_are_asked_for_whatever_is_missing),
		cmocka_unit_test(help_has_usage_values_and_defaults),
		cmocka_unit_test(long_texts_are_wrapped),
		cmocka_unit_test(the_manual_page_is_troff),
		cmocka_unit_test(completion_offers_options_choices_and_folders),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
