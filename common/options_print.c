/* Prints the texts that are made from a table of options: --help, the synopsis and option list of a manual page,
 * completion. */
#include <ctype.h>
#include <string.h>

#include "common/options.h"

enum { WIDTH = 100, TEXT_COLUMN = 26, TEXT_BYTES = 1024 };

void wlb_options_print_wrapped(const char *text, int indent, FILE *out)
{
	int column = indent;
	bool line_begins = true;
	while (*text != '\0') {
		int length = (int)strcspn(text, " \n");
		if (!line_begins && column + 1 + length > WIDTH) {
			fprintf(out, "\n%*s", indent, "");
			column = indent;
			line_begins = true;
		}
		column += fprintf(out, "%s%.*s", line_begins ? "" : " ", length, text);
		line_begins = false;
		text += length;
		for (; *text == ' ' || *text == '\n'; text++)
			if (*text == '\n') {
				fprintf(out, "\n%*s", text[1] != '\n' ? indent : 0, "");
				column = indent;
				line_begins = true;
			}
	}
	fputc('\n', out);
}

static const char *value_of(const struct wlb_option *row)
{
	if (row->kind == WLB_OPTION_FLAG || row->kind == WLB_OPTION_VERSION)
		return "";
	return row->value != NULL ? row->value : row->choices;
}

/* Writes the help text, followed by the default or by "(required)". */
static const char *describe(const struct wlb_option *row, char text[TEXT_BYTES])
{
	if (row->initial != NULL)
		snprintf(text, TEXT_BYTES, "%s (default %s)", row->help, row->initial);
	else
		snprintf(text, TEXT_BYTES, "%s%s", row->help, row->required && row->name != NULL ? " (required)" : "");
	return text;
}

/* Prints a text in troff's notation: "\-" for the dashes of an option, "\e" for a backslash. */
static void print_troff(const char *text, bool option, FILE *out)
{
	for (; *text != '\0'; text++)
		if (*text == '\\')
			fputs("\\e", out);
		else if (*text == '-' && option)
			fputs("\\-", out);
		else
			fputc(*text, out);
}

/* Prints the option and its value's name in troff's notation, or the argument. */
static void print_troff_option(const struct wlb_option *row, FILE *out)
{
	const char *value = value_of(row);
	if (row->name != NULL) {
		fputs("\\fB\\-\\-", out);
		print_troff(row->name, true, out);
		fputs(*value != '\0' ? "\\fR " : "\\fR", out);
	}
	if (*value != '\0') {
		fputs(row->value != NULL ? "\\fI" : "\\fB", out);
		print_troff(value, true, out);
		fputs("\\fR", out);
	}
}

/* Prints the option and its value's name, or the argument; returns the number of characters. */
static int print_plain_option(const struct wlb_option *row, FILE *out)
{
	const char *value = value_of(row);
	return row->name != NULL ? fprintf(out, "--%s%s%s", row->name, *value != '\0' ? " " : "", value)
	                         : fprintf(out, "%s", value);
}

static void print_option(const struct wlb_option *row, bool troff, FILE *out)
{
	if (troff)
		print_troff_option(row, out);
	else
		print_plain_option(row, out);
}

/* ---- usage: the first line of --help, and the synopsis of the manual page ---------------------------------------- */

/* Prints what follows the command's name: the required options, [OPTIONS], the arguments. */
static void print_words_of_usage(const struct wlb_option_table *table, bool troff, FILE *out)
{
	int optional = 0;
	for (int i = 0; i < table->count; i++) {
		const struct wlb_option *row = &table->options[i];
		if (row->name != NULL && row->required) {
			fputc(' ', out);
			print_option(row, troff, out);
		}
		optional += row->name != NULL && !row->required && row->kind != WLB_OPTION_VERSION;
	}
	if (optional > 0)
		fputs(troff ? " [\\fIOPTIONS\\fR]" : " [OPTIONS]", out);
	for (int i = 0; i < table->count; i++) {
		const struct wlb_option *row = &table->options[i];
		if (row->name != NULL)
			continue;
		fputs(row->required ? " " : " [", out);
		if (row->kind == WLB_OPTION_COMMAND)
			fputs(troff ? "\\fB\\-\\-\\fR " : "-- ", out);
		print_option(row, troff, out);
		fputs(row->required ? "" : "]", out);
	}
}

static void print_synopsis(const struct wlb_option_table *table, FILE *out)
{
	fputs("\\fB", out);
	print_troff(table->command, true, out);
	fputs("\\fR", out);
	print_words_of_usage(table, true, out);
	fputc('\n', out);
}

/* ---- --help ----------------------------------------------------------------------------------------------------- */

static void print_help_row(const struct wlb_option *row, FILE *out)
{
	char text[TEXT_BYTES];
	int column = fprintf(out, "  ");
	if (row->letter != '\0')
		column += fprintf(out, "-%c, ", row->letter);
	column += print_plain_option(row, out);
	if (column + 2 > TEXT_COLUMN) {
		fputc('\n', out);
		column = 0;
	}
	fprintf(out, "%*s", TEXT_COLUMN - column, "");
	wlb_options_print_wrapped(describe(row, text), TEXT_COLUMN, out);
}

static void print_help(const struct wlb_option_table *table, FILE *out)
{
	fprintf(out, "Usage: %s", table->command);
	print_words_of_usage(table, false, out);
	fputs("\n\n", out);
	wlb_options_print_wrapped(table->about, 0, out);
	for (int i = 0; i < table->count; i++) {
		const char *heading = table->options[i].heading;
		if (heading != NULL)
			fprintf(out, "\n%s:\n", heading);
		else if (i == 0)
			fputc('\n', out);
		print_help_row(&table->options[i], out);
	}
	if (table->notes != NULL) {
		fputc('\n', out);
		wlb_options_print_wrapped(table->notes, 0, out);
	}
}

/* ---- option list of the manual page ------------------------------------------------------------------------------ */

/* Prints a sentence with options in bold. */
static void print_troff_sentence(const char *sentence, FILE *out)
{
	char text[TEXT_BYTES];
	snprintf(text, sizeof(text), "%s", sentence);
	/* A name, such as config.json or the choice of "full: all layers", is unchanged. */
	size_t letters = strspn(text, "abcdefghijklmnopqrstuvwxyz");
	if (text[letters] == ' ' || text[letters] == ',' || text[letters] == '\0')
		text[0] = (char)toupper((unsigned char)text[0]);
	if (text[0] == '.' || text[0] == '\'')
		fputs("\\&", out); /* else troff takes the line for a request */
	for (char *rest = text, *word; (word = strsep(&rest, " ")) != NULL;) {
		bool option = strncmp(word, "--", 2) == 0;
		size_t length = option ? strspn(word, "-abcdefghijklmnopqrstuvwxyz0123456789") : 0;
		fprintf(out, "%s%s", word != text ? " " : "", option ? "\\fB" : "");
		for (size_t i = 0; i < length; i++)
			print_troff((char[]){word[i], '\0'}, true, out);
		fputs(option ? "\\fR" : "", out);
		print_troff(word + length, false, out);
	}
	fputs(".\n", out);
}

static void print_man(const struct wlb_option_table *table, FILE *out)
{
	for (int i = 0; i < table->count; i++) {
		const struct wlb_option *row = &table->options[i];
		char text[TEXT_BYTES];
		if (row->heading != NULL)
			/* Not a section: where a page has a section for each command, it is inside that. */
			fprintf(out, ".PP\n\\fB%s\\fR\n", row->heading);
		fputs(".TP\n", out);
		if (row->letter != '\0')
			fprintf(out, "\\fB\\-%c\\fR, ", row->letter);
		print_troff_option(row, out);
		fputc('\n', out);
		print_troff_sentence(describe(row, text), out);
	}
}

/* ---- completion ------------------------------------------------------------------------------------------------- */

static void print_words(const char *choices, FILE *out)
{
	for (; *choices != '\0'; choices++)
		fputc(*choices == '|' ? ' ' : *choices, out);
}

/* Prints the cases of a shell's `case`: "COMMAND" lists its options, "COMMAND --OPTION" the values of the option. */
static void print_completion(const struct wlb_option_table *table, FILE *out)
{
	fprintf(out, "\t'%s') words='", table->command);
	for (int i = 0; i < table->count; i++) {
		const struct wlb_option *row = &table->options[i];
		if (row->name != NULL)
			fprintf(out, "--%s ", row->name);
		else if (row->choices != NULL)
			print_words(row->choices, out), fputc(' ', out);
	}
	fputs("--help' ;;\n", out);
	for (int i = 0; i < table->count; i++) {
		const struct wlb_option *row = &table->options[i];
		if (row->name == NULL || *value_of(row) == '\0')
			continue;
		fprintf(out, "\t'%s --%s'", table->command, row->name);
		if (row->letter != '\0')
			fprintf(out, " | '%s -%c'", table->command, row->letter);
		fputs(") ", out);
		if (row->choices != NULL) {
			fputs("words='", out);
			print_words(row->choices, out);
			fputs("' ", out);
		} else if (strcmp(row->value, "DIR") == 0) {
			fputs("action=directory ", out);
		}
		fputs(";;\n", out);
	}
}

void wlb_options_print(const struct wlb_option_table *table, enum wlb_options_asked what, FILE *out)
{
	if (what == WLB_OPTIONS_HELP)
		print_help(table, out);
	else if (what == WLB_OPTIONS_VERSION)
		fprintf(out, "%s %s\n", table->command, WLB_VERSION);
	else if (what == WLB_OPTIONS_SYNOPSIS)
		print_synopsis(table, out);
	else if (what == WLB_OPTIONS_MAN)
		print_man(table, out);
	else if (what == WLB_OPTIONS_COMPLETION)
		print_completion(table, out);
}
