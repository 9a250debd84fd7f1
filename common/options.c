#include "common/options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "common/nearest.h"
#include "common/number.h"

/* getopt_long() returns ROW + i for row i, or its letter; ROW + count for --help. */
enum { ARGUMENT = 1, ROW = 256, LABEL_BYTES = 64, CHOICES_BYTES = 256 };

struct parser {
	const struct wlb_option_table *table;
	char *values;
	int argc; /* the most texts that a list may get */
	bool *given;
	struct wlb_error *error;
};

/* "--name", or the name of the argument; for choices of an argument "argument". */
static const char *label(const struct wlb_option *row, char text[LABEL_BYTES])
{
	if (row->name == NULL)
		return row->value != NULL ? row->value : "argument";
	snprintf(text, LABEL_BYTES, "--%s", row->name);
	return text;
}

/* "a|b|c" as "a, b or c". */
static const char *choices_in_words(const char *choices, char text[CHOICES_BYTES])
{
	size_t used = 0;
	for (const char *c = choices; *c != '\0' && used + 5 < CHOICES_BYTES; c++) {
		const char *join = strchr(c + 1, '|') != NULL ? ", " : " or ";
		used += (size_t)(*c == '|' ? snprintf(text + used, CHOICES_BYTES - used, "%s", join)
		                           : snprintf(text + used, CHOICES_BYTES - used, "%c", *c));
	}
	return text;
}

static int refuse(const struct wlb_option *row, const char *value, const char *rule, struct wlb_error *error)
{
	char name[LABEL_BYTES];
	return wlb_fail(error, "%s '%.200s': must be %s", label(row, name), value, rule);
}

static int read_choice(const struct wlb_option *row, const char *value, int *index, struct wlb_error *error)
{
	char words[CHOICES_BYTES];
	const char *word = row->choices;
	for (*index = 0;; ++*index) {
		size_t length = strcspn(word, "|");
		if (strlen(value) == length && strncmp(value, word, length) == 0)
			return 0;
		if (word[length] == '\0')
			return refuse(row, value, choices_in_words(row->choices, words), error);
		word += length + 1;
	}
}

static int read_text(const struct wlb_option *row, const char *value, const char **field, struct wlb_error *error)
{
	int index;
	if (row->choices != NULL && !row->open && read_choice(row, value, &index, error) < 0)
		return -1;
	if (*value == '\0')
		return refuse(row, value, "a text that is not empty", error);
	*field = value;
	return 0;
}

static int read_whole(const struct wlb_option *row, const char *value, void *field, struct wlb_error *error)
{
	char name[LABEL_BYTES];
	int64_t number;
	if (wlb_number_parse(label(row, name), value, (int64_t)row->min, (int64_t)row->max, &number, error) < 0)
		return -1;
	if (row->kind == WLB_OPTION_INT)
		*(int *)field = (int)number;
	else
		*(int64_t *)field = number;
	return 0;
}

static int read_real(const struct wlb_option *row, const char *value, double *field, struct wlb_error *error)
{
	char name[LABEL_BYTES];
	if (wlb_real_parse(label(row, name), value, row->min, row->max, field, error) == 0)
		return 0;
	return row->rule != NULL ? refuse(row, value, row->rule, error) : -1;
}

static int add_text(const struct parser *parser, const char *value, struct wlb_option_list *list)
{
	if (list->texts == NULL)
		list->texts = calloc((size_t)parser->argc + 1, sizeof(*list->texts));
	if (list->texts == NULL)
		return wlb_fail(parser->error, "out of memory");
	list->texts[list->count++] = (char *)value; /* points to a word of argv */
	return 0;
}

static int set(const struct parser *parser, const struct wlb_option *row, const char *value)
{
	void *field = parser->values + row->offset;
	switch (row->kind) {
	case WLB_OPTION_TEXT:
		return read_text(row, value, field, parser->error);
	case WLB_OPTION_CHOICE:
		return read_choice(row, value, field, parser->error);
	case WLB_OPTION_INT:
	case WLB_OPTION_INT64:
		return read_whole(row, value, field, parser->error);
	case WLB_OPTION_REAL:
		return read_real(row, value, field, parser->error);
	case WLB_OPTION_LIST:
		return add_text(parser, value, field);
	case WLB_OPTION_FLAG:
		*(bool *)field = true;
		return 0;
	case WLB_OPTION_COMMAND: /* set_arguments() sets all of the words at once */
	case WLB_OPTION_VERSION: /* read_words() returns */
		break;
	}
	return 0;
}

static int argument_row(const struct wlb_option_table *table)
{
	for (int i = 0; i < table->count; i++)
		if (table->options[i].name == NULL)
			return i;
	return -1;
}

static int set_argument(const struct parser *parser, const char *word)
{
	int i = argument_row(parser->table);
	const struct wlb_option *row = i >= 0 ? &parser->table->options[i] : NULL;
	const char *command = parser->table->command;
	if (row == NULL)
		return wlb_fail(parser->error, "'%.200s': no argument is taken; see '%s --help'", word, command);
	if (parser->given[i] && row->kind != WLB_OPTION_LIST)
		return wlb_fail(parser->error, "'%.200s': one argument is taken; see '%s --help'", word, command);
	parser->given[i] = true;
	return set(parser, row, word);
}

static int set_arguments(const struct parser *parser, char **argv)
{
	int i = argument_row(parser->table), rc = 0;
	if (i >= 0 && parser->table->options[i].kind == WLB_OPTION_COMMAND) {
		*(char ***)(parser->values + parser->table->options[i].offset) = argv;
		parser->given[i] = *argv != NULL;
		return 0;
	}
	for (char **word = argv; rc == 0 && *word != NULL; word++)
		rc = set_argument(parser, *word);
	return rc;
}

static int set_initial(const struct parser *parser)
{
	for (int i = 0; i < parser->table->count; i++) {
		const struct wlb_option *row = &parser->table->options[i];
		if (row->initial != NULL && set(parser, row, row->initial) < 0)
			return -1;
	}
	return 0;
}

static int check_required(const struct parser *parser)
{
	for (int i = 0; i < parser->table->count; i++) {
		const struct wlb_option *row = &parser->table->options[i];
		char name[LABEL_BYTES], words[CHOICES_BYTES];
		const struct wlb_option_list *list = (const void *)(parser->values + row->offset);
		bool present = row->kind == WLB_OPTION_LIST ? list->count > 0 : parser->given[i];
		if (!row->required || present)
			continue;
		bool verb = row->name == NULL && row->choices != NULL;
		return wlb_fail(parser->error, "%s is needed: %s; see '%s --help'",
		                verb ? choices_in_words(row->choices, words) : label(row, name), row->help,
		                parser->table->command);
	}
	return 0;
}

/* The long option that is nearest to a mistyped one, `word`; NULL: none is, or some begin with it, so that it is
 * ambiguous. */
static const char *nearest_option(const struct wlb_option_table *table, const char *word)
{
	char name[LABEL_BYTES];
	struct wlb_nearest nearest = {.word = name};
	size_t length = strcspn(word, "=");
	if (strncmp(word, "--", 2) != 0 || length >= sizeof(name))
		return NULL;
	snprintf(name, sizeof(name), "%.*s", (int)length - 2, word + 2);
	for (int i = 0; i < table->count; i++) {
		const char *other = table->options[i].name;
		if (other != NULL && strncmp(other, name, length - 2) == 0)
			return NULL;
		if (other != NULL)
			wlb_nearest_consider(&nearest, other);
	}
	return nearest.name;
}

/* Refuses the word `word`, for which getopt_long() returned `option`. */
static int refuse_word(const struct parser *parser, int option, const char *word)
{
	bool is_unknown = option != ':' && optopt < ROW;
	const char *problem = option == ':' ? "needs a value"
	                      : is_unknown  ? "is unknown or ambiguous"
	                                    : "takes no value";
	const char *nearest = is_unknown ? nearest_option(parser->table, word) : NULL;
	return wlb_fail(parser->error, "option '%.200s' %s%s%s%s; see '%s --help'", word, problem,
	                nearest != NULL ? "; the nearest is '--" : "", nearest != NULL ? nearest : "",
	                nearest != NULL ? "'" : "", parser->table->command);
}

static int help_kind(const struct parser *parser, const char *word)
{
	if (optarg == NULL)
		return WLB_OPTIONS_HELP;
	if (strcmp(optarg, "synopsis") == 0)
		return WLB_OPTIONS_SYNOPSIS;
	if (strcmp(optarg, "man") == 0)
		return WLB_OPTIONS_MAN;
	if (strcmp(optarg, "completion") == 0)
		return WLB_OPTIONS_COMPLETION;
	optopt = ROW;
	return refuse_word(parser, '?', word);
}

static bool has_value(const struct wlb_option *row)
{
	return row->kind != WLB_OPTION_FLAG && row->kind != WLB_OPTION_VERSION;
}

/* Writes getopt's list of short options; `letters` has room for 2 x count + 4 bytes. */
static void list_letters(const struct wlb_option_table *table, char *letters)
{
	int row = argument_row(table);
	/* "-": getopt returns arguments in order, among the options; "+": the first argument ends the options. */
	bool command = row >= 0 && table->options[row].kind == WLB_OPTION_COMMAND;
	letters = stpcpy(letters, command ? "+:h" : "-:h");
	for (int i = 0; i < table->count; i++)
		if (table->options[i].letter != '\0')
			letters += sprintf(letters, "%c%s", table->options[i].letter,
			                   has_value(&table->options[i]) ? ":" : "");
}

/* Returns the row for which getopt_long() returned `option`. */
static int row_of(const struct wlb_option_table *table, int option)
{
	int row = option - ROW;
	for (int i = 0; option < ROW && i < table->count; i++)
		if (table->options[i].letter == option)
			row = i;
	return row;
}

/* Adds the words of an option that takes several, behind the first, which getopt has read. */
static int add_more_words(const struct parser *parser, const struct wlb_option *row, char **argv)
{
	int rc = 0;
	char name[LABEL_BYTES];
	for (int i = 1; rc == 0 && i < row->words; i++) {
		const char *word = argv[optind];
		if (word == NULL || strncmp(word, "--", 2) == 0)
			return wlb_fail(parser->error, "option '%s' needs %d values, %s; see '%s --help'",
			                label(row, name), row->words, row->value, parser->table->command);
		optind++;
		rc = set(parser, row, word);
	}
	return rc;
}

static int read_words(const struct parser *parser, char **argv, const struct option *known)
{
	const struct wlb_option_table *table = parser->table;
	char letters[2 * table->count + 4];
	int option, rc = 0;
	list_letters(table, letters);
	optind = 0; /* glibc: restart, for a second command line in one process */
	opterr = 0;
	int before = 1;
	while (rc == 0 && (option = getopt_long(parser->argc, argv, letters, known, NULL)) != -1) {
		/* For several short options in a word, getopt moves to the next word only after the last. */
		const char *word = argv[optind > before ? optind - 1 : optind];
		before = optind;
		if (option == 'h' || option == ROW + table->count)
			return help_kind(parser, word);
		if (option == '?' || option == ':')
			return refuse_word(parser, option, word);
		if (option == ARGUMENT) {
			rc = set_argument(parser, optarg);
			continue;
		}
		int row = row_of(table, option);
		if (table->options[row].kind == WLB_OPTION_VERSION)
			return WLB_OPTIONS_VERSION;
		parser->given[row] = true;
		rc = set(parser, &table->options[row], optarg);
		if (rc == 0)
			rc = add_more_words(parser, &table->options[row], argv);
		before = optind;
	}
	return rc;
}

int wlb_options_parse(const struct wlb_option_table *table, int argc, char **argv, void *values,
                      struct wlb_error *error)
{
	struct option known[table->count + 2];
	bool given[table->count + 1];
	struct parser parser = {.table = table, .values = values, .argc = argc, .given = given, .error = error};
	int count = 0;
	memset(given, 0, sizeof(given));
	for (int i = 0; i < table->count; i++) {
		const struct wlb_option *row = &table->options[i];
		int takes = has_value(row) ? required_argument : no_argument;
		if (row->name != NULL)
			known[count++] = (struct option){row->name, takes, NULL, ROW + i};
	}
	known[count++] = (struct option){"help", optional_argument, NULL, ROW + table->count};
	known[count] = (struct option){0};
	if (set_initial(&parser) < 0)
		return -1;
	int asked = read_words(&parser, argv, known);
	if (asked != WLB_OPTIONS_READ)
		return asked;
	if (set_arguments(&parser, argv + optind) < 0)
		return -1;
	return check_required(&parser);
}

void wlb_options_free(const struct wlb_option_table *table, void *values)
{
	for (int i = 0; i < table->count; i++) {
		struct wlb_option_list *list = (void *)((char *)values + table->options[i].offset);
		if (table->options[i].kind != WLB_OPTION_LIST)
			continue;
		free(list->texts);
		*list = (struct wlb_option_list){0};
	}
}
