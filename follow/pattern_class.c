#include "follow/pattern_class.h"

#include <string.h>

#include "follow/pattern_program.h"

/* Where it is read, and what is wrong with it. */
struct place {
	const char *text;
	size_t at;
	const char *why;
};

static int refuse(struct place *place, const char *why)
{
	place->why = why;
	return -1;
}

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
static int escaped_byte(struct place *place, char letter)
{
	static const char letters[] = "ntrfvae", bytes[] = "\n\t\r\f\v\a\x1b", hex[] = "0123456789abcdef";
	const char *found = strchr(letters, letter);
	if (found != NULL)
		return bytes[found - letters];
	if (letter == 'x') {
		int value = 0;
		for (int i = 0; i < 2; i++, place->at++) {
			char digit = place->text[place->at];
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
static int read_escape(struct place *place, uint64_t set[4])
{
	char letter = place->text[place->at];
	if (letter == '\0')
		return refuse(place, "a backslash ends it: write \\\\ for a backslash");
	place->at++;
	if (add_named(set, letter))
		return -2;
	if (letter >= '1' && letter <= '9')
		return refuse(place, "backreferences are not matched in bounded time: leave them out");
	int byte = escaped_byte(place, letter);
	return byte >= 0 ? byte
	                 : refuse(place, "this escape is not known: use \\d \\w \\s \\b \\t \\xHH, or a "
	                                 "backslash before a sign");
}

static int take_escape(struct place *place, uint64_t set[4])
{
	int byte = read_escape(place, set);
	if (byte >= 0)
		set_range(set, byte, byte);
	return byte == -1 ? -1 : 0;
}

/* The next byte of a class, or -2 for a named set, which is added. */
static int read_class_byte(struct place *place, uint64_t set[4])
{
	char byte = place->text[place->at];
	if (byte == '\0')
		return refuse(place, "a [ has no ]: close the class, or write \\[");
	place->at++;
	return byte == '\\' ? read_escape(place, set) : (unsigned char)byte;
}

static int take_class(struct place *place, uint64_t set[4])
{
	uint64_t found[4] = {0};
	bool is_inverted = place->text[place->at] == '^', is_first = true;
	place->at += is_inverted;
	for (; place->text[place->at] != ']' || is_first; is_first = false) {
		int first = read_class_byte(place, found), last = first;
		if (first == -1)
			return -1;
		bool is_range = place->text[place->at] == '-' && place->text[place->at + 1] != ']';
		if (is_range && first >= 0) {
			place->at++;
			last = read_class_byte(place, found);
			if (last == -1)
				return -1;
		}
		if (last < first)
			return refuse(place, "a range in [...] is backwards: write the smaller end first");
		if (first >= 0)
			set_range(found, first, last);
	}
	place->at++;
	set_add(set, found, is_inverted);
	return 0;
}

int wlb_pattern_read_escape(const char *text, size_t *at, uint64_t set[4], const char **why)
{
	struct place place = {text, *at, NULL};
	int rc = take_escape(&place, set);
	*at = place.at;
	*why = place.why;
	return rc;
}

int wlb_pattern_read_class(const char *text, size_t *at, uint64_t set[4], const char **why)
{
	struct place place = {text, *at, NULL};
	int rc = take_class(&place, set);
	*at = place.at;
	*why = place.why;
	return rc;
}
