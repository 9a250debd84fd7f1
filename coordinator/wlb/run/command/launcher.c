#include "coordinator/wlb/run/command/launcher.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/number.h"
#include "coordinator/wlb/run/command/launcher_options.h"
#include "coordinator/wlb/run/command/program_word.h"

/* ---- which launcher it is ---------------------------------------------------------------------------------------- */

static const struct program {
	const char *name; /* of a program, or of a module of Python */
	const char *next; /* the word that follows; NULL: none has to */
	enum wlb_launcher_kind kind;
	const char *shown;
	const struct wlb_launcher_syntax *syntax;
} programs[] = {
	{"torchrun", NULL, WLB_LAUNCHER_TORCHRUN, "torchrun", &wlb_launcher_torchrun},
	{"torch.distributed.run", NULL, WLB_LAUNCHER_TORCHRUN, "torch.distributed.run", &wlb_launcher_torchrun},
	{"torch.distributed.launch", NULL, WLB_LAUNCHER_TORCHRUN, "torch.distributed.launch", &wlb_launcher_torchrun},
	{"ft_launcher", NULL, WLB_LAUNCHER_TORCHRUN, "ft_launcher", &wlb_launcher_ft},
	{"nvidia_resiliency_ext.fault_tolerance.launcher", NULL, WLB_LAUNCHER_TORCHRUN, "ft_launcher",
         &wlb_launcher_ft},
	{"accelerate", "launch", WLB_LAUNCHER_ACCELERATE, "accelerate launch", &wlb_launcher_accelerate},
	{"accelerate-launch", NULL, WLB_LAUNCHER_ACCELERATE, "accelerate launch", &wlb_launcher_accelerate},
	{"accelerate.commands.launch", NULL, WLB_LAUNCHER_ACCELERATE, "accelerate launch", &wlb_launcher_accelerate},
	{"accelerate.commands.accelerate_cli", "launch", WLB_LAUNCHER_ACCELERATE, "accelerate launch",
         &wlb_launcher_accelerate},
	{"deepspeed", NULL, WLB_LAUNCHER_DEEPSPEED, "deepspeed", &wlb_launcher_deepspeed},
	{"deepspeed.launcher.runner", NULL, WLB_LAUNCHER_DEEPSPEED, "deepspeed", &wlb_launcher_deepspeed},
};

static bool is_python(const char *word)
{
	const char *base = wlb_run_base_of(word);
	size_t length = strlen("python");
	return strncmp(base, "python", length) == 0 && base[length + strspn(base + length, "0123456789.")] == '\0';
}

/* Returns the index of the word that names what Python runs, a module or a file, and *name, which is a part of it; -1:
 * neither. */
static int find_python_program(char *const *words, int at, const char **name)
{
	for (; words[at] != NULL; at++) {
		const char *word = words[at], *module = strchr(word, 'm');
		if (word[0] != '-') {
			*name = wlb_run_base_of(word);
			return at;
		}
		/* "-W" and "-X" have a value, and "-c" a text that is run. */
		size_t plain = 1 + strspn(word + 1, "bBdEiIOPqsSuvVx");
		if (module != NULL && word + plain == module) {
			*name = module[1] != '\0' ? module + 1 : words[at + 1];
			return module[1] != '\0' ? at : *name != NULL ? at + 1 : -1;
		}
		if (word[plain] == '\0' && plain > 1)
			continue;
		if ((word[plain] != 'W' && word[plain] != 'X') || (word[plain + 1] == '\0' && words[++at] == NULL))
			return -1;
	}
	return -1;
}

static void find_script(char *const *words, struct wlb_launcher *launcher)
{
	struct wlb_launcher_option option;
	enum wlb_launcher_word word;
	int at = launcher->first;
	while ((word = wlb_launcher_option_read(launcher->syntax, words + at, &option)) == WLB_LAUNCHER_OPTION)
		at += option.words;
	launcher->script = at;
	launcher->unknown = word == WLB_LAUNCHER_UNKNOWN ? at : -1;
}

bool wlb_launcher_find(char *const *words, struct wlb_launcher *launcher)
{
	int at = wlb_run_program_word(words);
	*launcher = (struct wlb_launcher){.program = at};
	const char *name = words[at] != NULL ? wlb_run_base_of(words[at]) : "";
	if (words[at] != NULL && is_python(words[at]))
		at = find_python_program(words, at + 1, &name);
	if (at < 0 || words[at] == NULL)
		return false;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		const struct program *known = &programs[i];
		const char *next = words[at + 1];
		if (strcmp(name, known->name) != 0 ||
		    (known->next != NULL && (next == NULL || strcmp(next, known->next) != 0)))
			continue;
		launcher->kind = known->kind;
		launcher->name = known->shown;
		launcher->syntax = known->syntax;
		launcher->first = at + 1 + (known->next != NULL);
		find_script(words, launcher);
		return true;
	}
	return false;
}

/* ---- its options ------------------------------------------------------------------------------------------------- */

struct option_place {
	struct wlb_launcher_option option;
	int word;
};

/* Finds the last option of that name, which is the one that counts; false: the command has none. */
static bool find_option(char *const *words, const struct wlb_launcher *launcher, const char *name,
                        struct option_place *place)
{
	struct wlb_launcher_option option;
	bool is_found = false;
	for (int at = launcher->first; at < launcher->script; at += option.words) {
		wlb_launcher_option_read(launcher->syntax, words + at, &option);
		if (strcmp(option.name, name) != 0)
			continue;
		*place = (struct option_place){option, at};
		is_found = true;
	}
	return is_found;
}

static const char *value_of(char *const *words, const struct wlb_launcher *launcher, const char *name)
{
	struct option_place place;
	return find_option(words, launcher, name, &place) ? place.option.value : NULL;
}

static bool has_option(char *const *words, const struct wlb_launcher *launcher, const char *name)
{
	struct option_place place;
	return find_option(words, launcher, name, &place);
}

static int refuse_option(char *const *words, const struct wlb_launcher *launcher, const char *name, const char *why,
                         struct wlb_error *error)
{
	struct option_place place;
	if (!find_option(words, launcher, name, &place))
		return 0;
	return wlb_fail(error, "%s %.100s%s%.100s: %s", launcher->name, words[place.word],
	                place.option.words == 2 ? " " : "", place.option.words == 2 ? words[place.word + 1] : "", why);
}

/* ---- what changes with an attempt -------------------------------------------------------------------------------- */

enum { CHANGES = 12, VALUE_BYTES = 320 };

struct change {
	const char *name;
	bool is_added;           /* where the command has no such option */
	bool is_removed;         /* where it has one */
	char value[VALUE_BYTES]; /* otherwise */
};

struct changes {
	struct change list[CHANGES];
	int count;
	const char *rank_option; /* that has another value in each task; NULL: there is none */
};

static void remove_option(struct changes *changes, const char *name)
{
	changes->list[changes->count++] = (struct change){.name = name, .is_removed = true};
}

__attribute__((format(printf, 4, 5))) static void set_option(struct changes *changes, const char *name, bool is_added,
                                                             const char *format, ...)
{
	struct change *change = &changes->list[changes->count++];
	va_list args;
	*change = (struct change){.name = name, .is_added = is_added};
	va_start(args, format);
	vsnprintf(change->value, sizeof(change->value), format, args);
	va_end(args);
}

static int change_torchrun(char *const *words, const struct wlb_launcher *launcher,
                           const struct wlb_launcher_facts *facts, struct changes *changes, struct wlb_error *error)
{
	const char *backend = value_of(words, launcher, "rdzv-backend");
	bool is_static = backend == NULL || strcmp(backend, "static") == 0;
	bool is_c10d = backend != NULL && strcmp(backend, "c10d") == 0;
	if (facts->nodes > 1 &&
	    (refuse_option(words, launcher, "standalone",
	                   "each node would train on its own; remove it: wlb run gives the launcher its nodes",
	                   error) < 0 ||
	     refuse_option(words, launcher, "local-addr",
	                   "all nodes would have this address; remove it: each then finds its own", error) < 0))
		return -1;
	if (has_option(words, launcher, "standalone"))
		return 0;
	set_option(changes, "nnodes", true, "%d", facts->nodes);
	set_option(changes, "rdzv-id", !is_static, "%s", facts->id);
	remove_option(changes, "node-rank");
	/* Another server is the user's own. */
	if (is_static || is_c10d)
		set_option(changes, "rdzv-endpoint", is_c10d, "%s:%d", facts->address, facts->port);
	set_option(changes, "master-addr", is_static, "%s", facts->address);
	set_option(changes, "master-port", is_static, "%d", facts->port);
	return 0;
}

/* Finds how many processes a node has, from the total in the command. */
static int processes_of_node(char *const *words, const struct wlb_launcher *launcher,
                             const struct wlb_launcher_facts *facts, int64_t *count, struct wlb_error *error)
{
	const char *total = value_of(words, launcher, "num-processes"),
		   *machines = value_of(words, launcher, "num-machines");
	int64_t processes, nodes = facts->first_nodes;
	*count = facts->gpus_per_node;
	if (total == NULL && *count > 0 && !has_option(words, launcher, "config-file"))
		return 0;
	if (total == NULL)
		return wlb_fail(error,
		                "%s: --num_processes is missing, and a configuration file has one total for all "
		                "attempts; give --num_processes=N, for all %d nodes of the job",
		                launcher->name, facts->first_nodes);
	if (wlb_number_parse("--num_processes", total, 1, 1 << 20, &processes, error) < 0 ||
	    (machines != NULL && wlb_number_parse("--num_machines", machines, 1, 1 << 20, &nodes, error) < 0))
		return -1;
	*count = processes / nodes;
	if (processes % nodes == 0)
		return 0;
	return wlb_fail(error,
	                "%s --num_processes=%.20s: must be a multiple of the %d nodes that it is for, since each node "
	                "starts as many processes",
	                launcher->name, total, (int)nodes);
}

int wlb_launcher_processes(char *const *words, const struct wlb_launcher *launcher,
                           const struct wlb_launcher_facts *facts, int *count, struct wlb_error *error)
{
	bool is_torchrun = launcher->kind == WLB_LAUNCHER_TORCHRUN;
	const char *name = is_torchrun ? "nproc-per-node" : "num-gpus", *text = value_of(words, launcher, name);
	bool is_by_gpus = text == NULL ? !is_torchrun : strcmp(text, "gpu") == 0 || strcmp(text, "auto") == 0;
	int64_t number = is_by_gpus ? facts->gpus_per_node : 1;
	int rc = 0;
	if (launcher->unknown >= 0)
		return wlb_fail(error,
		                "%s %.100s: an option that is not known here, so the processes of a node are not; "
		                "where it has a value, write it as OPTION=VALUE",
		                launcher->name, words[launcher->unknown]);
	if (launcher->kind == WLB_LAUNCHER_ACCELERATE)
		rc = processes_of_node(words, launcher, facts, &number, error);
	else if (text != NULL && !is_by_gpus)
		rc = wlb_number_parse(name, text, 1, 4096, &number, error);
	if (rc < 0)
		return -1;
	*count = (int)number;
	return number > 0 ? 0
	                  : wlb_fail(error, "%s: how many GPUs a node has is not known; give --%s=N", launcher->name,
	                             name);
}

static int change_accelerate(char *const *words, const struct wlb_launcher *launcher,
                             const struct wlb_launcher_facts *facts, struct changes *changes, struct wlb_error *error)
{
	static const char host_file[] = "the hosts in a file are the same for every attempt; remove it, and start "
					"accelerate without mpirun and ssh, as wlb run does on each node";
	const char *multinode = value_of(words, launcher, "deepspeed-multinode-launcher");
	int64_t processes;
	if (refuse_option(words, launcher, "mpirun-hostfile", host_file, error) < 0 ||
	    refuse_option(words, launcher, "deepspeed-hostfile", host_file, error) < 0)
		return -1;
	if (has_option(words, launcher, "use-deepspeed") && facts->first_nodes > 1 &&
	    (multinode == NULL || strcmp(multinode, "standard") != 0))
		return wlb_fail(error,
		                "%s --use_deepspeed: --deepspeed_multinode_launcher is '%.40s', which starts the other "
		                "nodes by ssh; give --deepspeed_multinode_launcher=standard",
		                launcher->name, multinode != NULL ? multinode : "pdsh");
	if (processes_of_node(words, launcher, facts, &processes, error) < 0)
		return -1;
	set_option(changes, "num-processes", true, "%lld", (long long)processes * facts->nodes);
	set_option(changes, "num-machines", true, "%d", facts->nodes);
	set_option(changes, "main-process-ip", true, "%s", facts->address);
	set_option(changes, "main-process-port", true, "%d", facts->port);
	remove_option(changes, "machine-rank");
	changes->rank_option = "--machine_rank";
	return 0;
}

static int change_deepspeed(char *const *words, const struct wlb_launcher *launcher,
                            const struct wlb_launcher_facts *facts, struct changes *changes, struct wlb_error *error)
{
	static const char node_list[] = "these nodes are the same for every attempt; remove it";
	if (facts->first_nodes == 1)
		return 0;
	if (!has_option(words, launcher, "no-ssh"))
		return wlb_fail(error,
		                "%s: it starts the other nodes by ssh, where Slurm does not see the processes; add "
		                "--no_ssh, so that wlb run starts it on each node",
		                launcher->name);
	if (refuse_option(words, launcher, "include", node_list, error) < 0 ||
	    refuse_option(words, launcher, "exclude", node_list, error) < 0)
		return -1;
	/* With --no_ssh it counts the lines, and the names have no meaning. */
	if (!has_option(words, launcher, "hostfile"))
		return wlb_fail(error,
		                "%s --no_ssh: --hostfile is missing, without which it trains on one node; give a file "
		                "with a line 'NAME slots=GPUS' for each of the %d nodes",
		                launcher->name, facts->first_nodes);
	set_option(changes, "num-nodes", true, "%d", facts->nodes);
	set_option(changes, "master-addr", true, "%s", facts->address);
	set_option(changes, "master-port", true, "%d", facts->port);
	remove_option(changes, "node-rank");
	changes->rank_option = "--node_rank";
	return 0;
}

/* ---- one line ---------------------------------------------------------------------------------------------------- */

struct line {
	char *text;
	size_t size, length;
	bool is_cut;
};

static void put(struct line *line, const char *text)
{
	size_t length = strlen(text);
	if (line->is_cut || line->length + length + sizeof(" ...") > line->size) {
		line->is_cut = true;
		return;
	}
	memcpy(line->text + line->length, text, length + 1);
	line->length += length;
}

static void put_word(struct line *line, const char *word)
{
	bool is_plain = word[0] != '\0';
	for (const char *c = word; *c != '\0'; c++)
		is_plain = is_plain && (isalnum((unsigned char)*c) || strchr("_@%+=:,./-", *c) != NULL);
	if (is_plain) {
		put(line, word);
		return;
	}
	put(line, "'");
	for (const char *c = word; *c != '\0'; c++)
		put(line, *c == '\'' ? "'\\''" : (char[2]){*c, '\0'});
	put(line, "'");
}

static void write_line(char *const *words, int count, char *line, size_t size)
{
	struct line to = {.text = line, .size = size};
	line[0] = '\0';
	for (int i = 0; i < count; i++) {
		if (i > 0)
			put(&to, " ");
		put_word(&to, words[i]);
	}
	while (to.is_cut && to.length > 0 && line[to.length - 1] == ' ')
		to.length--;
	if (to.is_cut)
		memcpy(line + to.length, " ...", sizeof(" ..."));
}

void wlb_launcher_line(char *const *words, char *line, size_t size)
{
	int count = 0;
	while (words[count] != NULL)
		count++;
	write_line(words, count, line, size);
}

/* ---- the words of the attempt ------------------------------------------------------------------------------------ */

struct word_list {
	char **words;
	int count;
	bool has_failed;
};

/* Takes a word that asprintf made, NULL where it had no memory. */
static void add_made(struct word_list *list, char *word)
{
	list->words[list->count++] = word;
	list->has_failed = list->has_failed || word == NULL;
}

static void add_word(struct word_list *list, const char *word)
{
	add_made(list, strdup(word));
}

__attribute__((format(printf, 2, 3))) static void add_format(struct word_list *list, const char *format, ...)
{
	char *word;
	va_list args;
	va_start(args, format);
	add_made(list, vasprintf(&word, format, args) >= 0 ? word : NULL);
	va_end(args);
}

static const struct change *find_change(const struct changes *changes, const char *name)
{
	for (int i = 0; i < changes->count; i++)
		if (strcmp(changes->list[i].name, name) == 0)
			return &changes->list[i];
	return NULL;
}

/* The name of an option stays as the user has written it. */
static void add_option(struct word_list *list, const struct change *change, char *const *words,
                       const struct wlb_launcher_option *option)
{
	if (change == NULL) {
		for (int i = 0; i < option->words; i++)
			add_word(list, words[i]);
	} else if (!change->is_removed && option->words == 2) {
		add_word(list, words[0]);
		add_word(list, change->value);
	} else if (!change->is_removed) {
		add_format(list, "%.*s=%s", (int)strcspn(words[0], "="), words[0], change->value);
	}
}

/* Every release of the launchers knows the spelling with underscores. */
static void add_missing(struct word_list *list, const struct changes *changes, char *const *words,
                        const struct wlb_launcher *launcher)
{
	for (int i = 0; i < changes->count; i++) {
		const struct change *change = &changes->list[i];
		char name[64];
		if (!change->is_added || has_option(words, launcher, change->name))
			continue;
		snprintf(name, sizeof(name), "%s", change->name);
		for (char *hyphen = name; (hyphen = strchr(hyphen, '-')) != NULL;)
			*hyphen = '_';
		add_format(list, "--%s=%s", name, change->value);
	}
}

/* Has sh start the launcher with the rank of the node: sh -c 'exec "$0" launch --machine_rank="$SLURM_PROCID" "$@"'
 * accelerate. */
static void add_shell(struct word_list *list, char *const *words, const struct wlb_launcher *launcher,
                      const char *rank_option)
{
	int count = launcher->first - launcher->program - 1;
	size_t size = sizeof(" ...");
	for (int i = 1; i <= count; i++)
		size += strlen("'\\'' ") * (strlen(words[launcher->program + i]) + 1);
	char *own = malloc(size);
	add_word(list, "sh");
	add_word(list, "-c");
	if (own == NULL) {
		add_made(list, NULL);
		return;
	}
	write_line(words + launcher->program + 1, count, own, size);
	add_format(list, "exec \"$0\" %s%s%s=\"$SLURM_PROCID\" \"$@\"", own, count > 0 ? " " : "", rank_option);
	free(own);
}

static int make_words(char *const *words, const struct wlb_launcher *launcher, const struct changes *changes,
                      struct word_list *list)
{
	int count = 0, at;
	while (words[count] != NULL)
		count++;
	list->words = calloc((size_t)count + CHANGES + 4, sizeof(*list->words));
	if (list->words == NULL)
		return -1;
	for (at = 0; at < launcher->program; at++)
		add_word(list, words[at]);
	if (changes->rank_option != NULL) {
		add_shell(list, words, launcher, changes->rank_option);
		add_word(list, words[launcher->program]);
		at = launcher->first;
	}
	for (; at < launcher->first; at++)
		add_word(list, words[at]);
	add_missing(list, changes, words, launcher);
	while (at < launcher->script) {
		struct wlb_launcher_option option;
		wlb_launcher_option_read(launcher->syntax, words + at, &option);
		add_option(list, find_change(changes, option.name), words + at, &option);
		at += option.words;
	}
	for (; at < count; at++)
		add_word(list, words[at]);
	return list->has_failed ? -1 : 0;
}

int wlb_launcher_rewrite(char *const *words, const struct wlb_launcher *launcher,
                         const struct wlb_launcher_facts *facts, char ***made, struct wlb_error *error)
{
	struct changes changes = {.count = 0};
	struct word_list list = {0};
	int rc = 0;
	if (launcher->unknown < 0 && launcher->kind == WLB_LAUNCHER_TORCHRUN)
		rc = change_torchrun(words, launcher, facts, &changes, error);
	else if (launcher->unknown < 0 && launcher->kind == WLB_LAUNCHER_ACCELERATE)
		rc = change_accelerate(words, launcher, facts, &changes, error);
	else if (launcher->unknown < 0)
		rc = change_deepspeed(words, launcher, facts, &changes, error);
	if (rc == 0 && make_words(words, launcher, &changes, &list) != 0)
		rc = wlb_fail(error, "out of memory for a command");
	if (rc != 0) {
		for (int i = 0; i < list.count; i++)
			free(list.words[i]);
		free(list.words);
		return -1;
	}
	*made = list.words;
	return 0;
}

void wlb_launcher_free(char **made)
{
	for (int i = 0; made != NULL && made[i] != NULL; i++)
		free(made[i]);
	free(made);
}
