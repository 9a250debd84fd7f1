#include "planner/trainer_file.h"

#include <jansson.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "planner/data_file.h"

static const char unfused[] = "unfused";

/* A field of the file, and the member that it fills. */
struct member {
	const char *name;
	enum { FLAG, REAL, OVERLAP, COUNT } kind;
	size_t offset;
	double least, most; /* of a number */
};

#define MEMBER(field) offsetof(struct wlb_cost_options, field)

static const struct member members[] = {
	{"tp_overlap", OVERLAP, MEMBER(tp_overlap), 0.0, 1.0},
	{"cp_overlap", OVERLAP, MEMBER(cp_overlap), 0.0, 1.0},
	{"overlap_gradients", FLAG, MEMBER(overlap_gradients), 0.0, 1.0},
	{"overlap_parameters", FLAG, MEMBER(overlap_parameters), 0.0, 1.0},
	{"overlap_pp", FLAG, MEMBER(overlap_pp), 0.0, 1.0},
	{"fp8_parameters", FLAG, MEMBER(fp8_parameters), 0.0, 1.0},
	{"fp8_inputs", FLAG, MEMBER(fp8_inputs), 0.0, 1.0},
	{"keep_outputs", FLAG, MEMBER(keep_outputs), 0.0, 1.0},
	{"release_activations", FLAG, MEMBER(release_activations), 0.0, 1.0},
	{"whole_rows", FLAG, MEMBER(whole_rows), 0.0, 1.0},
	{"early_stop", FLAG, MEMBER(early_stop), 0.0, 1.0},
	{"owned_tensors", FLAG, MEMBER(owned_tensors), 0.0, 1.0},
	{"fused_loss", FLAG, MEMBER(fused_loss), 0.0, 1.0},
	{"elementwise", REAL, MEMBER(elementwise), 1.0, 100.0},
	{"growth", REAL, MEMBER(growth), 0.0, 0.1},
	{"eager", FLAG, MEMBER(eager), 0.0, 1.0},
	{"keep_gradients", FLAG, MEMBER(keep_gradients), 0.0, 1.0},
	{"gather_masters", FLAG, MEMBER(gather_masters), 0.0, 1.0},
	{"logit_bytes", REAL, MEMBER(logit_bytes), 2.0, 16.0},
	{"fragmentation", REAL, MEMBER(fragmentation), 0.0, 1.0},
	{"context_bytes", REAL, MEMBER(context_bytes), 0.0, 0x1p36},
};

enum { MEMBERS = sizeof(members) / sizeof(members[0]) };

/* Fields that may be absent, since few programs do it: that is false or 0, and of optimizer_bytes float32. */
static const struct member optional[] = {
	{"pp_outermost", FLAG, MEMBER(pp_outermost), 0.0, 1.0},
	{"shards_each_pass", FLAG, MEMBER(shards_each_pass), 0.0, 1.0},
	{"optimizer_bytes", REAL, MEMBER(optimizer_bytes), 4.0, 12.0},
	{"embedding_product", FLAG, MEMBER(embedding_product), 0.0, 1.0},
	{"biases_apart", FLAG, MEMBER(biases_apart), 0.0, 1.0},
	{"looped_layers", FLAG, MEMBER(looped_layers), 0.0, 1.0},
	{"rows_by_node", FLAG, MEMBER(rows_by_node), 0.0, 1.0},
	{"rows_by_rank", FLAG, MEMBER(rows_by_rank), 0.0, 1.0},
	{"grouped_experts", FLAG, MEMBER(grouped_experts), 0.0, 1.0},
	{"weighted_experts", FLAG, MEMBER(weighted_experts), 0.0, 1.0},
	{"fused_experts", FLAG, MEMBER(fused_experts), 0.0, 1.0},
	{"split_operations", FLAG, MEMBER(split_operations), 0.0, 1.0},
	{"exchange_rate", REAL, MEMBER(exchange_rate), 0.1, 1.0},
	{"exchange_processors", COUNT, MEMBER(exchange_processors), 0.0, 1024.0},
};

enum { OPTIONAL = sizeof(optional) / sizeof(optional[0]) };

static int read_number(const json_t *value, const struct member *member, double *out, struct wlb_error *error)
{
	*out = json_number_value(value);
	if (json_is_number(value) && *out >= member->least && *out <= member->most)
		return 0;
	return wlb_fail(error, "%s must be a number from %g to %g", member->name, member->least, member->most);
}

static int read_member(const json_t *root, const struct member *member, struct wlb_cost_options *cost,
                       struct wlb_error *error)
{
	void *at = (char *)cost + member->offset;
	const json_t *value = json_object_get(root, member->name);
	if (member->kind == FLAG) {
		*(int *)at = json_is_true(value);
		return json_is_boolean(value) ? 0 : wlb_fail(error, "%s must be true or false", member->name);
	}
	double number;
	if (read_number(value, member, &number, error) < 0)
		return -1;
	if (member->kind == COUNT && number != floor(number))
		return wlb_fail(error, "%s must be a whole number", member->name);
	if (member->kind == COUNT)
		*(int32_t *)at = (int32_t)number;
	else if (member->kind == REAL)
		*(double *)at = number;
	else
		*(struct wlb_overlap *)at = (struct wlb_overlap){number, number};
	return 0;
}

static int read_text(const json_t *root, const char *name, char *out, size_t size, struct wlb_error *error)
{
	const char *text = json_string_value(json_object_get(root, name));
	size_t length = text != NULL ? strlen(text) : 0;
	int plain = length > 0 && length < size;
	for (size_t i = 0; plain && i < length; i++)
		plain = (unsigned char)text[i] > ' ' && (unsigned char)text[i] < 0x7f;
	if (!plain)
		return wlb_fail(error, "%s must be a word of 1 to %zu printable characters", name, size - 1);
	strcpy(out, text);
	return 0;
}

/* {"H100": 1.24, ...} */
static int read_products(json_t *object, struct wlb_trainer_file *trainer, struct wlb_error *error)
{
	static const struct member rate = {"products: each rate", REAL, 0, 0.1, 10.0};
	const char *name;
	json_t *value;
	if (!json_is_object(object) || json_object_size(object) > WLB_TRAINER_MACHINES)
		return wlb_fail(error, "products must be an object of at most %d machines", WLB_TRAINER_MACHINES);
	json_object_foreach(object, name, value)
	{
		int i = trainer->products_count++;
		if (*name == '\0' || strlen(name) >= sizeof(trainer->products[i].machine))
			return wlb_fail(error, "products: the name of a machine must have 1 to %zu bytes",
			                sizeof(trainer->products[i].machine) - 1);
		strcpy(trainer->products[i].machine, name);
		if (read_number(value, &rate, &trainer->products[i].rate, error) < 0)
			return -1;
	}
	return 0;
}

static int read_gradient_type(const json_t *root, struct wlb_cost_options *cost, struct wlb_error *error)
{
	const char *type = json_string_value(json_object_get(root, "gradient_type"));
	if (type == NULL || (strcmp(type, "float32") != 0 && strcmp(type, "bfloat16") != 0))
		return wlb_fail(error, "gradient_type must be float32 or bfloat16");
	cost->gradient_bytes = strcmp(type, "float32") == 0 ? 4 : 2;
	return 0;
}

/* ["moe_act", "layernorm,moe_act", ...]; may be absent, which is none. */
static int read_recompute(const json_t *root, struct wlb_cost_options *cost, struct wlb_error *error)
{
	const json_t *list = json_object_get(root, "recompute");
	if (list != NULL && (!json_is_array(list) || json_array_size(list) > WLB_RECOMPUTE_SETS))
		return wlb_fail(error, "recompute must be a list of at most %d sets of modules", WLB_RECOMPUTE_SETS);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *text = json_string_value(json_array_get(list, i));
		enum wlb_recompute set;
		if (wlb_recompute_set_parse(text != NULL ? text : "", &set, error) < 0)
			return wlb_fail_in(error, "recompute");
		if (set <= WLB_RECOMPUTE_FULL)
			return wlb_fail(error, "recompute: '%s' is tried in any case: leave it out", text);
		cost->recompute_sets[i] = (int32_t)set;
	}
	return 0;
}

static int is_among(const char *name, const struct member *list, int count)
{
	int found = 0;
	for (int i = 0; i < count; i++)
		found |= strcmp(name, list[i].name) == 0;
	return found;
}

/* Each field that is not a name has a text in "sources". */
static int check_sources(json_t *root, struct wlb_error *error)
{
	const json_t *sources = json_object_get(root, "sources");
	const char *key;
	json_t *value;
	json_object_foreach(root, key, value)
	{
		int known = strcmp(key, "attention") == 0 || strcmp(key, "products") == 0 ||
		            strcmp(key, "gradient_type") == 0 || strcmp(key, "recompute") == 0 ||
		            is_among(key, members, MEMBERS) || is_among(key, optional, OPTIONAL);
		if (strcmp(key, "name") == 0 || strcmp(key, "program") == 0 || strcmp(key, "sources") == 0)
			continue;
		if (!known)
			return wlb_fail(
				error,
				"field '%.60s' is unknown: the fields are those of libwlb/trainers/megatron.json", key);
		if (json_string_length(json_object_get(sources, key)) == 0)
			return wlb_fail(error, "sources must say where %s is from", key);
	}
	return 0;
}

static int read_fields(json_t *root, struct wlb_trainer_file *trainer, struct wlb_error *error)
{
	char program[16];
	if (!json_is_object(root))
		return wlb_fail(error, "must be an object, such as {\"name\": ...}");
	if (check_sources(root, error) < 0 ||
	    read_text(root, "name", trainer->name, sizeof(trainer->name), error) < 0 ||
	    read_text(root, "program", program, sizeof(program), error) < 0)
		return -1;
	if (strcmp(program, "worker") == 0 && json_object_size(root) == 3) {
		trainer->cost.trainer = WLB_COST_WORKER;
		return 0;
	}
	if (strcmp(program, "megatron") != 0)
		return wlb_fail(error, "program must be megatron, or worker with name and sources alone");
	for (int i = 0; i < MEMBERS; i++)
		if (read_member(root, &members[i], &trainer->cost, error) < 0)
			return -1;
	trainer->cost.optimizer_bytes = 12.0;
	for (int i = 0; i < OPTIONAL; i++)
		if (json_object_get(root, optional[i].name) != NULL &&
		    read_member(root, &optional[i], &trainer->cost, error) < 0)
			return -1;
	if (read_gradient_type(root, &trainer->cost, error) < 0 || read_recompute(root, &trainer->cost, error) < 0 ||
	    read_text(root, "attention", trainer->attention, sizeof(trainer->attention), error) < 0)
		return -1;
	return read_products(json_object_get(root, "products"), trainer, error);
}

int wlb_trainer_file_parse(const char *text, size_t bytes, struct wlb_trainer_file *trainer, struct wlb_error *error)
{
	json_error_t why;
	json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why);
	if (root == NULL)
		return wlb_fail(error, "line %d: not JSON: %s", why.line, why.text);
	*trainer = (struct wlb_trainer_file){.name = ""};
	int rc = read_fields(root, trainer, error);
	json_decref(root);
	return rc;
}

static int parse(const char *text, size_t bytes, void *trainer, struct wlb_error *error)
{
	return wlb_trainer_file_parse(text, bytes, trainer, error);
}

int wlb_trainer_file_read(const char *from, struct wlb_trainer_file *trainer, struct wlb_error *error)
{
	static const struct wlb_data_folder trainers = {"trainers", "WLB_TRAINERS"};
	return wlb_data_file_read(&trainers, from, parse, trainer, error);
}

int wlb_trainer_file_apply(const struct wlb_trainer_file *trainer, const char *attention, struct wlb_machine *machine,
                           struct wlb_cost_options *cost, struct wlb_error *error)
{
	const char *kernel = attention != NULL ? attention : trainer->attention;
	if (trainer->cost.trainer == WLB_COST_WORKER) {
		wlb_cost_options_worker(cost, machine);
		return 0;
	}
	*cost = trainer->cost;
	cost->unfused_attention = strcmp(kernel, unfused) == 0;
	if (!cost->unfused_attention && wlb_machine_use_kernel(machine, kernel, error) < 0 && attention != NULL)
		return -1;
	for (int i = 0; i < trainer->products_count; i++)
		if (strcasecmp(trainer->products[i].machine, machine->name) == 0)
			machine->gemm_efficiency = fmin(1.0, machine->gemm_efficiency * trainer->products[i].rate);
	return 0;
}
