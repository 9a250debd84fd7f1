#include "follow/pattern_parse.h"

#include <stdlib.h>
#include <string.h>

#include "follow/pattern_class.h"

static int parse_alternatives(struct wlb_pattern_parse *parse);

/* Fails with the pattern, the place and the reason. */
static int refuse(struct wlb_pattern_parse *parse, const char *why)
{
	return wlb_fail(parse->error, "pattern '%.200s': at byte %zu: %s", parse->text, parse->at, why);
}

static char peek(const struct wlb_pattern_parse *parse)
{
	return parse->text[parse->at];
}

static int new_node(struct wlb_pattern_parse *parse, enum wlb_pattern_node_kind kind, int left, int right)
{
	if (parse->count == WLB_PATTERN_NODES_MOST)
		return refuse(parse, "it has too many parts: shorten it");
	parse->nodes[parse->count] = (struct wlb_pattern_node){.kind = kind, .left = left, .right = right};
	return parse->count++;
}

/* The name of a group, up to > */
static int parse_name(struct wlb_pattern_parse *parse, int group)
{
	const char *name = parse->text + parse->at;
	size_t bytes = 0;
	while (wlb_pattern_is_word((unsigned char)name[bytes]))
		bytes++;
	if (bytes == 0 || bytes >= WLB_PATTERN_GROUP_NAME_SIZE || name[bytes] != '>')
		return refuse(parse, "a group's name has 1 to 31 letters, digits and _, and > behind it");
	memcpy(parse->pattern->names[group], name, bytes);
	parse->pattern->names[group][bytes] = '\0';
	for (int i = 1; i < group; i++)
		if (strcmp(parse->pattern->names[i], parse->pattern->names[group]) == 0)
			return refuse(parse, "a group's name is used twice: give each another one");
	parse->at += bytes + 1;
	return 0;
}

/* What is behind a (: sets *group, -1 for none. */
static int parse_group_kind(struct wlb_pattern_parse *parse, int *group)
{
	const char *text = parse->text + parse->at;
	*group = -1;
	if (strncmp(text, "?:", 2) == 0) {
		parse->at += 2;
		return 0;
	}
	bool is_named = strncmp(text, "?P<", 3) == 0 || (strncmp(text, "?<", 2) == 0 && strchr("=!", text[2]) == NULL);
	if (text[0] == '?' && !is_named)
		return refuse(parse, "lookaround, flags and conditions are not matched in bounded time: use "
		                     "(...), (?:...) or (?P<name>...)");
	if (parse->pattern->groups == WLB_PATTERN_GROUPS_MOST)
		return refuse(parse, "it has more than 11 groups: write (?:...) for those without a value");
	*group = parse->pattern->groups++;
	if (!is_named)
		return 0;
	parse->at += text[1] == 'P' ? 3 : 2;
	return parse_name(parse, *group);
}

static int parse_group(struct wlb_pattern_parse *parse)
{
	int group;
	if (parse_group_kind(parse, &group) < 0)
		return -1;
	if (++parse->depth > WLB_PATTERN_DEPTH_MOST)
		return refuse(parse, "its groups are nested more than 32 deep: take some out");
	int inner = parse_alternatives(parse);
	parse->depth--;
	if (inner < 0)
		return -1;
	if (peek(parse) != ')')
		return refuse(parse, "a ( has no ): close the group, or write \\(");
	parse->at++;
	if (group < 0)
		return inner;
	int node = new_node(parse, WLB_PATTERN_GROUP, inner, -1);
	if (node >= 0)
		parse->nodes[node].group = group;
	return node;
}

static int new_assert(struct wlb_pattern_parse *parse, enum wlb_pattern_op op)
{
	int node = new_node(parse, WLB_PATTERN_ASSERT, -1, -1);
	if (node >= 0)
		parse->nodes[node].op = op;
	return node;
}

/* One byte: itself, . or an escape or class. */
static int parse_byte(struct wlb_pattern_parse *parse, char byte)
{
	int node = new_node(parse, WLB_PATTERN_BYTE, -1, -1), rc = 0;
	const char *why;
	if (node < 0)
		return -1;
	uint64_t *set = parse->nodes[node].set;
	if (byte == '.')
		memset(set, -1, sizeof(parse->nodes[node].set));
	else if (byte == '\\')
		rc = wlb_pattern_read_escape(parse->text, &parse->at, set, &why);
	else if (byte == '[')
		rc = wlb_pattern_read_class(parse->text, &parse->at, set, &why);
	else
		set[(unsigned char)byte / 64] |= UINT64_C(1) << ((unsigned char)byte % 64);
	return rc < 0 ? refuse(parse, why) : node;
}

static int parse_atom(struct wlb_pattern_parse *parse)
{
	char byte = parse->text[parse->at++];
	if (byte == '(')
		return parse_group(parse);
	if (byte == '^')
		return new_assert(parse, WLB_PATTERN_BEGIN);
	if (byte == '$')
		return new_assert(parse, WLB_PATTERN_END);
	if (byte == '\\' && peek(parse) == 'b') {
		parse->at++;
		return new_assert(parse, WLB_PATTERN_BOUNDARY);
	}
	if (strchr("*+?", byte) != NULL)
		return refuse(parse, "a * + or ? has nothing before it to repeat: write a backslash before it");
	return parse_byte(parse, byte);
}

/* {m}, {m,} or {m,n} at the place; anything else there is text. Returns whether it is one. */
static bool parse_counts(struct wlb_pattern_parse *parse, long *least, long *most)
{
	const char *text = parse->text + parse->at + 1;
	char *end;
	if (peek(parse) != '{' || *text < '0' || *text > '9')
		return false;
	*least = *most = strtol(text, &end, 10);
	if (*end == ',') {
		text = end + 1;
		*most = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : -1;
		if (*most < 0)
			end++;
	}
	if (*end != '}')
		return false;
	parse->at = (size_t)(end + 1 - parse->text);
	return true;
}

static bool parse_quantifier(struct wlb_pattern_parse *parse, long *least, long *most)
{
	char sign = peek(parse);
	if (parse_counts(parse, least, most))
		return true;
	if (sign == '\0' || strchr("*+?", sign) == NULL)
		return false;
	*least = sign == '+';
	*most = sign == '?' ? 1 : -1;
	parse->at++;
	return true;
}

static int parse_repeat(struct wlb_pattern_parse *parse)
{
	long least, most;
	int node = parse_atom(parse);
	if (node < 0 || !parse_quantifier(parse, &least, &most))
		return node;
	if (least > WLB_PATTERN_REPEATS_MOST || most > WLB_PATTERN_REPEATS_MOST || (most >= 0 && most < least))
		return refuse(parse, "a {m,n} has m <= n <= 100: repeat with * or + instead");
	int repeat = new_node(parse, WLB_PATTERN_REPEAT, node, -1);
	if (repeat < 0)
		return -1;
	parse->nodes[repeat].least = (int)least;
	parse->nodes[repeat].most = (int)most;
	parse->nodes[repeat].is_shortest = peek(parse) == '?';
	parse->at += peek(parse) == '?';
	if (peek(parse) != '\0' && strchr("*+?", peek(parse)) != NULL)
		return refuse(parse, "two signs of repetition follow each other: put the first part in (?:...)");
	return repeat;
}

static int parse_sequence(struct wlb_pattern_parse *parse)
{
	int left = new_node(parse, WLB_PATTERN_EMPTY, -1, -1);
	while (left >= 0 && peek(parse) != '\0' && peek(parse) != '|' && peek(parse) != ')') {
		int right = parse_repeat(parse);
		left = right < 0 ? -1 : new_node(parse, WLB_PATTERN_THEN, left, right);
	}
	return left;
}

static int parse_alternatives(struct wlb_pattern_parse *parse)
{
	int left = parse_sequence(parse);
	while (left >= 0 && peek(parse) == '|') {
		parse->at++;
		int right = parse_sequence(parse);
		left = right < 0 ? -1 : new_node(parse, WLB_PATTERN_OR, left, right);
	}
	return left;
}

int wlb_pattern_parse(struct wlb_pattern_parse *parse)
{
	if (strlen(parse->text) > WLB_PATTERN_BYTES_MOST)
		return wlb_fail(parse->error, "a pattern of %zu bytes: must have at most %d", strlen(parse->text),
		                WLB_PATTERN_BYTES_MOST);
	int root = parse_alternatives(parse);
	if (root >= 0 && peek(parse) != '\0')
		return refuse(parse, "a ) closes no group: write \\)");
	return root;
}
