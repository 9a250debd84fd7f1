#include "follow/pattern.h"

#include <stdlib.h>
#include <string.h>

#include "follow/pattern_parse.h"

struct compile {
	const struct wlb_pattern_parse *parse;
	struct wlb_pattern *pattern;
	bool is_full; /* the program has no more room */
};

/* Returns the instruction, which is the last one where there is no more room. */
static struct wlb_pattern_instruction *emit(struct compile *compile, enum wlb_pattern_op op, int first)
{
	struct wlb_pattern *pattern = compile->pattern;
	if (pattern->count == WLB_PATTERN_PROGRAM_MOST)
		compile->is_full = true;
	else
		pattern->count++;
	struct wlb_pattern_instruction *instruction = &pattern->program[pattern->count - 1];
	*instruction = (struct wlb_pattern_instruction){.op = op, .first = first};
	return instruction;
}

static void emit_node(struct compile *compile, int at);

static void emit_or(struct compile *compile, const struct wlb_pattern_node *node)
{
	struct wlb_pattern_instruction *split = emit(compile, WLB_PATTERN_SPLIT, compile->pattern->count + 1);
	emit_node(compile, node->left);
	struct wlb_pattern_instruction *jump = emit(compile, WLB_PATTERN_JUMP, 0);
	split->second = compile->pattern->count;
	emit_node(compile, node->right);
	jump->first = compile->pattern->count;
}

/* A split between what follows it and a place that is set later. */
static void set_split(struct wlb_pattern_instruction *split, bool is_shortest, int inside, int behind)
{
	split->first = is_shortest ? behind : inside;
	split->second = is_shortest ? inside : behind;
}

static void emit_repeat(struct compile *compile, const struct wlb_pattern_node *node)
{
	struct wlb_pattern_instruction *split;
	int splits[WLB_PATTERN_REPEATS_MOST], count = 0;
	int begin = -1; /* a part without instructions is not repeated: nested ones would never end */
	for (int i = 0; i < node->least && !compile->is_full && begin != compile->pattern->count; i++) {
		begin = compile->pattern->count;
		emit_node(compile, node->left);
	}
	if (node->most < 0) {
		begin = compile->pattern->count;
		split = emit(compile, WLB_PATTERN_SPLIT, 0);
		emit_node(compile, node->left);
		emit(compile, WLB_PATTERN_JUMP, begin);
		set_split(split, node->is_shortest, begin + 1, compile->pattern->count);
	}
	for (int i = node->least; i < node->most && !compile->is_full; i++) {
		splits[count++] = compile->pattern->count;
		emit(compile, WLB_PATTERN_SPLIT, 0);
		emit_node(compile, node->left);
	}
	for (int i = 0; i < count && !compile->is_full; i++)
		set_split(&compile->pattern->program[splits[i]], node->is_shortest, splits[i] + 1,
		          compile->pattern->count);
}

static void emit_node(struct compile *compile, int at)
{
	const struct wlb_pattern_node *node = &compile->parse->nodes[at];
	switch (node->kind) {
	case WLB_PATTERN_EMPTY:
		break;
	case WLB_PATTERN_BYTE:
		memcpy(emit(compile, WLB_PATTERN_SET, 0)->set, node->set, sizeof(node->set));
		break;
	case WLB_PATTERN_ASSERT:
		emit(compile, node->op, 0);
		break;
	case WLB_PATTERN_THEN:
		emit_node(compile, node->left);
		emit_node(compile, node->right);
		break;
	case WLB_PATTERN_OR:
		emit_or(compile, node);
		break;
	case WLB_PATTERN_REPEAT:
		emit_repeat(compile, node);
		break;
	case WLB_PATTERN_GROUP:
		emit(compile, WLB_PATTERN_SAVE, 2 * node->group);
		emit_node(compile, node->left);
		emit(compile, WLB_PATTERN_SAVE, 2 * node->group + 1);
		break;
	}
}

static int compile_text(struct wlb_pattern *pattern, struct wlb_pattern_parse *parse)
{
	struct compile compile = {parse, pattern, false};
	pattern->groups = 1;
	int root = wlb_pattern_parse(parse);
	if (root < 0)
		return -1;
	emit(&compile, WLB_PATTERN_SAVE, 0);
	emit_node(&compile, root);
	emit(&compile, WLB_PATTERN_SAVE, 1);
	emit(&compile, WLB_PATTERN_MATCH, 0);
	if (compile.is_full)
		return wlb_fail(
			parse->error,
			"pattern '%.200s': its repetitions make more than %d instructions: use * or + for {m,n}",
			parse->text, WLB_PATTERN_PROGRAM_MOST);
	return 0;
}

struct wlb_pattern *wlb_pattern_compile(const char *text, struct wlb_error *error)
{
	struct wlb_pattern *pattern = calloc(1, sizeof(*pattern));
	struct wlb_pattern_parse *parse = calloc(1, sizeof(*parse));
	int rc = -1;
	if (pattern == NULL || parse == NULL) {
		wlb_fail(error, "out of memory for a pattern");
	} else {
		parse->text = text;
		parse->pattern = pattern;
		parse->error = error;
		rc = compile_text(pattern, parse);
	}
	free(parse);
	if (rc < 0) {
		free(pattern);
		return NULL;
	}
	return pattern;
}

void wlb_pattern_free(struct wlb_pattern *pattern)
{
	free(pattern);
}

int wlb_pattern_groups(const struct wlb_pattern *pattern)
{
	return pattern->groups;
}

const char *wlb_pattern_group_name(const struct wlb_pattern *pattern, int group)
{
	return pattern->names[group];
}
