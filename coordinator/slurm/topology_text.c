#include "coordinator/slurm/topology_text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coordinator/slurm/slurm_api.h"

enum { NODES_MAX = 1 << 20 };

/* A name and its index: sorted, to find names and duplicates. */
struct named {
	const char *name;
	int32_t number;
};

/* The content of the lines, before names are replaced by numbers. */
struct reader {
	struct wlb_topology_file *file;
	size_t capacity;       /* of the file's switches */
	char ***below;         /* names of the switches below each; those of the file, owned */
	int32_t node_capacity; /* of the file's nodes */
	struct named *known;   /* switches by name */
	bool is_listing;       /* slurmctld's, and not a topology.conf */
	bool has_switches;     /* the line */
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static int add_switch(struct reader *reader, const char *name, struct wlb_error *error)
{
	struct wlb_topology_file *file = reader->file;
	size_t count = file->topology.count;
	if (count == reader->capacity) {
		size_t capacity = 2 * reader->capacity + 64;
		struct wlb_switch *switches = reallocarray(file->switches, capacity, sizeof(*switches));
		if (switches != NULL)
			file->switches = switches;
		char **names = reallocarray(file->names, capacity, sizeof(*names));
		if (names != NULL)
			file->names = names;
		char ***below = reallocarray(reader->below, capacity, sizeof(*below));
		if (below != NULL)
			reader->below = below;
		if (switches == NULL || names == NULL || below == NULL)
			return wlb_fail(error, "out of memory for %zu switches", capacity);
		reader->capacity = capacity;
	}
	char *copy = strdup(name);
	if (copy == NULL)
		return wlb_fail(error, "out of memory for switch '%.60s'", name);
	file->names[count] = copy;
	file->switches[count] = (struct wlb_switch){.name = copy};
	reader->below[count] = NULL;
	file->topology.count++;
	return 0;
}

/* Adds the names, which it owns from then on. */
static int add_nodes(struct reader *reader, struct wlb_switch *entry, char **names, int count, struct wlb_error *error)
{
	struct wlb_topology_file *file = reader->file;
	if (count > NODES_MAX - file->node_count)
		return wlb_fail(error, "more than %d nodes", NODES_MAX);
	if (file->node_count + count > reader->node_capacity) {
		int32_t capacity = 2 * (file->node_count + count);
		char **grown = reallocarray(file->nodes, (size_t)capacity, sizeof(*grown));
		if (grown == NULL)
			return wlb_fail(error, "out of memory for %d nodes", capacity);
		file->nodes = grown;
		reader->node_capacity = capacity;
	}
	int32_t *numbers = calloc((size_t)count + 1, sizeof(*numbers));
	if (numbers == NULL)
		return wlb_fail(error, "out of memory for %d nodes", count);
	for (int i = 0; i < count; i++) {
		numbers[i] = file->node_count;
		file->nodes[file->node_count++] = names[i];
		names[i] = NULL;
	}
	entry->nodes = numbers;
	entry->node_count = (size_t)count;
	return 0;
}

/* libslurm ignores brackets that are not closed. */
static int check_brackets(const char *list, struct wlb_error *error)
{
	int depth = 0;
	for (const char *c = list; *c != '\0' && depth >= 0 && depth <= 1; c++)
		depth += (*c == '[') - (*c == ']');
	return depth == 0 ? 0 : wlb_fail(error, "'%.60s': brackets must be closed, as in n[1-3,5]", list);
}

int wlb_topology_names(const char *list, char ***names, int *count, struct wlb_error *error)
{
	*names = NULL;
	*count = 0;
	if (check_brackets(list, error) < 0)
		return -1;
	return wlb_hostlist_expand(list, names, count, error);
}

static bool is_ignored(const struct reader *reader, const char *key)
{
	static const char *const listed[] = {"Level", "BlockIndex", "BlockSize"};
	if (strcasecmp(key, "LinkSpeed") == 0)
		return true;
	for (size_t i = 0; i < sizeof(listed) / sizeof(listed[0]); i++)
		if (reader->is_listing && strcasecmp(key, listed[i]) == 0)
			return true;
	return reader->is_listing && reader->has_switches && strcasecmp(key, "Nodes") == 0;
}

/* Reads one "Key=value" of a line; its switch is the newest. */
static int read_word(struct reader *reader, const char *key, const char *value, struct wlb_error *error)
{
	size_t newest = reader->file->topology.count - 1;
	struct wlb_switch *entry = &reader->file->switches[newest];
	bool nodes = strcasecmp(key, "Nodes") == 0;
	if (is_ignored(reader, key))
		return 0;
	if (!nodes && strcasecmp(key, "Switches") != 0)
		return wlb_fail(error, "'%.60s' is unknown: use SwitchName, Nodes, Switches and LinkSpeed", key);
	if (nodes ? entry->nodes != NULL : reader->below[newest] != NULL)
		return wlb_fail(error, "%s=%.60s: %s is there twice", key, value, key);
	char **names = NULL;
	int count = 0;
	if (wlb_topology_names(value, &names, &count, error) < 0)
		return -1;
	int rc = 0;
	if (count == 0) {
		rc = wlb_fail(error, "%s=%.60s: names nothing", key, value);
	} else if (nodes) {
		rc = add_nodes(reader, entry, names, count, error);
	} else {
		reader->below[newest] = names;
		entry->switch_count = (size_t)count;
		return 0;
	}
	wlb_strings_free(names, count);
	return rc;
}

static int read_line(struct reader *reader, char *line, struct wlb_error *error)
{
	const char *first_key = reader->is_listing && strncmp(line, "Block", 5) == 0 ? "BlockName" : "SwitchName";
	bool first = true;
	reader->has_switches = strstr(line, " Switches=") != NULL;
	for (char *word; (word = strsep(&line, " \t\r")) != NULL;) {
		if (*word == '\0')
			continue;
		char *value = strchr(word, '=');
		if (value == NULL || value[1] == '\0')
			return wlb_fail(error, "'%.60s': must be Key=value", word);
		*value++ = '\0';
		if (first != (strcasecmp(word, first_key) == 0))
			return wlb_fail(error, "'%.60s=%.60s': a line begins with %s=, which is there once", word,
			                value, first_key);
		if ((first ? add_switch(reader, value, error) : read_word(reader, word, value, error)) < 0)
			return -1;
		first = false;
	}
	if (first)
		return 0;
	const struct wlb_switch *entry = &reader->file->switches[reader->file->topology.count - 1];
	if (entry->node_count == 0 && entry->switch_count == 0)
		return wlb_fail(error, "switch %.60s: has neither Nodes nor Switches", entry->name);
	return 0;
}

/* Joins lines that end in a backslash with the next. */
static int read_lines(struct reader *reader, char *text, struct wlb_error *error)
{
	int number = 0;
	for (char *line; (line = strsep(&text, "\n")) != NULL;) {
		int first = ++number;
		for (size_t length = strlen(line); length > 0 && line[length - 1] == '\\' && text != NULL;
		     length = strlen(line)) {
			line[length - 1] = ' ';
			text[-1] = ' ';
			strsep(&text, "\n");
			number++;
		}
		line[strcspn(line, "#")] = '\0';
		/* Blocks of blocks name nodes that are in a block already. */
		if (reader->is_listing && strncmp(line, "AggregatedBlock=", 16) == 0)
			continue;
		if (read_line(reader, line, error) < 0)
			return wlb_fail_in(error, "line %d", first);
	}
	return reader->file->topology.count > 0 ? 0 : wlb_fail(error, "has no line SwitchName=");
}

/* Returns the names sorted; NULL with a message if one appears twice. The caller frees the result. */
static struct named *sort_names(char *const *names, size_t count, const char *what, struct wlb_error *error)
{
	struct named *sorted = calloc(count + 1, sizeof(*sorted));
	if (sorted == NULL) {
		wlb_fail(error, "out of memory for %zu names", count);
		return NULL;
	}
	for (size_t i = 0; i < count; i++)
		sorted[i] = (struct named){names[i], (int32_t)i};
	qsort(sorted, count, sizeof(*sorted), by_name);
	for (size_t i = 1; i < count; i++)
		if (strcmp(sorted[i - 1].name, sorted[i].name) == 0) {
			wlb_fail(error, "%s %.60s is there twice: it must be under one switch", what, sorted[i].name);
			free(sorted);
			return NULL;
		}
	return sorted;
}

static int link_switches(struct reader *reader, struct wlb_error *error)
{
	struct wlb_topology_file *file = reader->file;
	for (size_t i = 0; i < file->topology.count; i++) {
		struct wlb_switch *entry = &file->switches[i];
		if (entry->switch_count == 0)
			continue;
		int32_t *numbers = calloc(entry->switch_count, sizeof(*numbers));
		if (numbers == NULL)
			return wlb_fail(error, "out of memory for %zu switches", entry->switch_count);
		entry->switches = numbers;
		for (size_t k = 0; k < entry->switch_count; k++) {
			const struct named key = {.name = reader->below[i][k]};
			const struct named *found =
				bsearch(&key, reader->known, file->topology.count, sizeof(key), by_name);
			if (found == NULL)
				return wlb_fail(error, "switch %.60s is named by %.60s and has no line of its own",
				                key.name, entry->name);
			numbers[k] = found->number;
		}
	}
	return 0;
}

static int check_names(struct reader *reader, struct wlb_error *error)
{
	struct wlb_topology_file *file = reader->file;
	struct named *nodes = sort_names(file->nodes, (size_t)file->node_count, "node", error);
	free(nodes);
	reader->known = nodes != NULL ? sort_names(file->names, file->topology.count, "switch", error) : NULL;
	return reader->known != NULL ? 0 : -1;
}

static int parse(char *text, bool is_listing, struct wlb_topology_file *file, struct wlb_error *error)
{
	struct reader reader = {.file = file, .is_listing = is_listing};
	int rc = read_lines(&reader, text, error);
	if (rc == 0)
		rc = check_names(&reader, error);
	if (rc == 0)
		rc = link_switches(&reader, error);
	for (size_t i = 0; i < file->topology.count; i++)
		if (reader.below[i] != NULL)
			wlb_strings_free(reader.below[i], (int)file->switches[i].switch_count);
	free(reader.below);
	free(reader.known);
	file->topology.switches = file->switches;
	return rc;
}

int wlb_topology_file_parse(char *text, struct wlb_topology_file *file, struct wlb_error *error)
{
	return parse(text, false, file, error);
}

int wlb_topology_listing_parse(char *text, struct wlb_topology_file *file, struct wlb_error *error)
{
	return parse(text, true, file, error);
}

void wlb_topology_file_keep_first(struct wlb_topology_file *file, int32_t nodes)
{
	for (size_t i = 0; i < file->topology.count; i++) {
		struct wlb_switch *entry = &file->switches[i];
		/* Numbers ascend within a switch. */
		while (entry->node_count > 0 && entry->nodes[entry->node_count - 1] >= nodes)
			entry->node_count--;
	}
}

void wlb_topology_file_free(struct wlb_topology_file *file)
{
	for (size_t i = 0; i < file->topology.count; i++) {
		free(file->names[i]);
		free((int32_t *)file->switches[i].switches);
		free((int32_t *)file->switches[i].nodes);
	}
	free(file->names);
	free(file->switches);
	wlb_strings_free(file->nodes, file->node_count);
	*file = (struct wlb_topology_file){0};
}
