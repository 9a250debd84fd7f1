/* Sets of bytes in a pattern: \d and other escapes, [...]. */
#include <string.h>

#include "follow/pattern_parse.h"

static void set_range(uint64_t set[4], int first, int last)
{
	for (int byte = first; byte <= last; byte++)
		set[byte / 64] |= UINT64_C(1) << (byte % 64);
}

static void set_add(uint64_t set[4], const uint64_t other[4], bool is_inverted)
{
	for (int i = 0; i < 4; i++)
		set[i] |= is_inverted ? ~other[i] : other[i];
}

/* Adds \d, \w, \s or their opposites. Returns whether the letter is one of them. */
static bool add_named(uint64_t set[4], char letter)
{
	uint64_t named[4] = {0};
	switch (letter | 0x20) {
	case 'd':
		set_range(named, '0', '9');
		break;
	case 'w':
		for (int byte = 0; byte < 128; byte++)
			if (wlb_pattern_is_word((unsigned char)byte))
				set_range(named, byte, byte);
		break;
	case 's':
		set_range(named, '\t', '\r');
		set_range(named, ' ', ' ');
		break;
	default:
		return false;
	}
	set_add(set, named, letter < 'a');
	return true;
}

/* The byte that \n, \t, \x1b or an escaped sign is; -1 for another letter or digit, which has a meaning elsewhere. */
static int escaped_byte(struct wlb_pattern_parse *parse, char letter)
{
	static const char letters[] = "ntrfvae", bytes[] = "\n\t\r\f\v\a\x1b", hex[] = "0123456789abcdef";
	const char *found = strchr(letters, letter);
	if (found != NULL)
		return bytes[found - letters];
	if (letter == 'x') {
		int value = 0;
		for (int i = 0; i < 2; i++, parse->at++) {
			char digit = parse->text[parse->at];
			found = digit != '\0' ? strchr(hex, digit >= 'A' && digit <= 'F' ? digit | 0x20 : digit) : NULL;
			if (found == NULL)
				return -1;
			value = value * 16 + (int)(found - hex);
		}
		return value;
	}
	return wlb_pattern_is_word((unsigned char)letter) && letter != '_' ? -1 : (unsigned char)letter;
}

/* The byte of an escape behind its backslash; -2 where it is one of the named sets, which is added. */
static int read_escape(struct wlb_pattern_parse *parse, uint64_t set[4])
{
	char letter = parse->text[parse->at];
	if (letter == '\0')
		return wlb_pattern_refuse(parse, "a backslash ends it: write \\\\ for a backslash");
	parse->at++;
	if (add_named(set, letter))
		return -2;
	if (letter >= '1' && letter <= '9')
		return wlb_pattern_refuse(parse, "backreferences are not matched in bounded time: leave them out");
	int byte = escaped_byte(parse, letter);
	return byte >= 0 ? byte
	                 : wlb_pattern_refuse(parse, "this escape is not known: use \\d \\w \\s \\b \\t \\xHH, or a "
	                                             "backslash before a sign");
}

int wlb_pattern_parse_escape(struct wlb_pattern_parse *parse, uint64_t set[4])
{
	int byte = read_escape(parse, set);
	if (byte >= 0)
		set_range(set, byte, byte);
	return byte == -1 ? -1 : 0;
}

/* The next byte of a class, or -2 for a named set, which is added. */
static int read_class_byte(struct wlb_pattern_parse *parse, uint64_t set[4])
{
	char byte = parse->text[parse->at];
	if (byte == '\0')
		return wlb_pattern_refuse(parse, "a [ has no ]: close the class, or write \\[");
	parse->at++;
	return byte == '\\' ? read_escape(parse, set) : (unsigned char)byte;
}

int wlb_pattern_parse_class(struct wlb_pattern_parse *parse, uint64_t set[4])
{
	uint64_t found[4] = {0};
	bool is_inverted = parse->text[parse->at] == '^', is_first = true;
	parse->at += is_inverted;
	for (; parse->text[parse->at] != ']' || is_first; is_first = false) {
		int first = read_class_byte(parse, found), last = first;
		if (first == -1)
			return -1;
		bool is_range = parse->text[parse->at] == '-' && parse->text[parse->at + 1] != ']';
		if (is_range && first >= 0) {
			parse->at++;
			last = read_class_byte(parse, found);
			if (last == -1)
				return -1;
		}
		if (last < first)
			return wlb_pattern_refuse(parse, "a range in [...] is backwards: write the smaller end first");
		if (first >= 0)
			set_range(found, first, last);
	}
	parse->at++;
	set_add(set, found, is_inverted);
	return 0;
}
