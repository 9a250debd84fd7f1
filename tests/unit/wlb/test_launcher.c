/* The options of launchers that change with an attempt. */
#include "coordinator/wlb/run/command/launcher.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/wlb/words.h"

/* A job of four nodes has two left. */
static const struct wlb_launcher_facts two_of_four = {
	.nodes = 2, .first_nodes = 4, .gpus_per_node = 0, .id = "7.2", .address = "n3", .port = 30001};

static void check(const struct wlb_launcher_facts *facts, const char *command, const char *expected)
{
	struct words from;
	struct wlb_launcher launcher;
	struct wlb_error error;
	char **made, line[2048];
	char **words = split(&from, command);
	if (!wlb_launcher_find(words, &launcher))
		fail_msg("no launcher: %s", command);
	if (wlb_launcher_rewrite(words, &launcher, facts, &made, &error) != 0)
		fail_msg("%s: %s", command, error.message);
	wlb_launcher_line(made, line, sizeof(line));
	assert_string_equal(line, expected);
	wlb_launcher_free(made);
}

static void refused(const struct wlb_launcher_facts *facts, const char *command, const char *why)
{
	struct words from;
	struct wlb_launcher launcher;
	struct wlb_error error;
	char **made;
	char **words = split(&from, command);
	assert_true(wlb_launcher_find(words, &launcher));
	if (wlb_launcher_rewrite(words, &launcher, facts, &made, &error) == 0)
		fail_msg("%s is not refused", command);
	if (strstr(error.message, why) == NULL)
		fail_msg("%s: %s", command, error.message);
}

static void launchers_are_found(void **state)
{
	static const struct {
		const char *command, *name;
		int program, first, script;
	} cases[] = {
		{"torchrun train.py --nnodes 3", "torchrun", 0, 1, 1},
		{"/opt/venv/bin/torchrun --nnodes 4 train.py", "torchrun", 0, 1, 3},
		{"torchrun -m package.train --nnodes 4", "torchrun", 0, 1, 2},
		{"torchrun --nnodes=4 -- train.py", "torchrun", 0, 1, 2},
		{"torchrun -r 3 -t3 --no_python train", "torchrun", 0, 1, 5},
		{"python -m torch.distributed.run --nnodes 4 t.py", "torch.distributed.run", 0, 3, 5},
		{"python3 -m torch.distributed.launch --use_env t.py", "torch.distributed.launch", 0, 3, 4},
		{"python3.11 -u -W ignore -Xdev -m torch.distributed.run t.py", "torch.distributed.run", 0, 7, 7},
		{"python -um torch.distributed.run t.py", "torch.distributed.run", 0, 3, 3},
		{"python -mtorch.distributed.run t.py", "torch.distributed.run", 0, 2, 2},
		{"python /opt/bin/torchrun t.py", "torchrun", 0, 2, 2},
		{"env A=1 numactl -m 0 torchrun t.py", "torchrun", 5, 6, 6},
		{"apptainer exec --nv -B /a:/b image.sif torchrun t.py", "torchrun", 6, 7, 7},
		{"singularity exec docker://a/b:1 python -m torch.distributed.run t.py", "torch.distributed.run", 3, 6,
	         6},
		{"conda run -n e --no-capture-output torchrun t.py", "torchrun", 5, 6, 6},
		{"uv run torchrun t.py", "torchrun", 2, 3, 3},
		{"accelerate launch --cpu t.py", "accelerate launch", 0, 2, 3},
		{"accelerate-launch t.py", "accelerate launch", 0, 1, 1},
		{"python -m accelerate.commands.launch t.py", "accelerate launch", 0, 3, 3},
		{"ft_launcher --ft-param-log_level=DEBUG --ignore-missing-fault-tol-cfg t.py", "ft_launcher", 0, 1, 3},
		{"deepspeed -H hosts --no_ssh t.py", "deepspeed", 0, 1, 4},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct words from;
		struct wlb_launcher found;
		if (!wlb_launcher_find(split(&from, cases[i].command), &found) ||
		    strcmp(found.name, cases[i].name) != 0 || found.program != cases[i].program ||
		    found.first != cases[i].first || found.script != cases[i].script || found.unknown >= 0)
			fail_msg("%s: %d %d %d %d", cases[i].command, found.program, found.first, found.script,
			         found.unknown);
	}
}

static void other_commands_have_none(void **state)
{
	static const char *const commands[] = {
		"python train.py torchrun",
		"bash -c torchrun~--nnodes~4~train.py",
		"./torchrun.sh --nnodes 4",
		"accelerate config",
		"accelerate",
		"python -c torchrun",
		"python -m torch.distributed",
		"python",
		"python -m",
		"wlb-worker train",
		"env",
		"pythonw -m torchrun",
		"python -W",
		"srun torchrun",
		"apptainer exec image.sif train torchrun",
		"apptainer run torchrun",
		"apptainer exec sandbox torchrun",
		"uv pip torchrun",
		"conda torchrun",
	};
	(void)state;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct words from;
		struct wlb_launcher found;
		if (wlb_launcher_find(split(&from, commands[i]), &found))
			fail_msg("%s", commands[i]);
	}
}

static void torchrun_gets_its_nodes(void **state)
{
	(void)state;
	check(&two_of_four, "torchrun --nnodes 4 --nproc_per_node 8 train.py --nnodes 4",
	      "torchrun --master_addr=n3 --master_port=30001 --nnodes 2 --nproc_per_node 8 train.py --nnodes 4");
	check(&two_of_four, "torchrun --nnodes=4 --node_rank=0 --master-addr n1 --master-port=29500 t.py",
	      "torchrun --nnodes=2 --master-addr n3 --master-port=30001 t.py");
	check(&two_of_four,
	      "torchrun --nnodes=1:4 --rdzv-backend=c10d --rdzv_id 99 --rdzv-endpoint n1:29400 -m p.train",
	      "torchrun --nnodes=2 --rdzv-backend=c10d --rdzv_id 7.2 --rdzv-endpoint n3:30001 -m p.train");
	check(&two_of_four, "torchrun --rdzv_backend c10d t.py",
	      "torchrun --nnodes=2 --rdzv_id=7.2 --rdzv_endpoint=n3:30001 --rdzv_backend c10d t.py");
	check(&two_of_four, "python -m torch.distributed.run --rdzv-backend=static --rdzv-endpoint=n1:1 t.py",
	      "python -m torch.distributed.run --nnodes=2 --master_addr=n3 --master_port=30001 --rdzv-backend=static "
	      "--rdzv-endpoint=n3:30001 t.py");
	check(&two_of_four, "torchrun --rdzv-backend=etcd-v2 --rdzv-endpoint=etcd:2379 --rdzv-id=1 --nnodes=4 t.py",
	      "torchrun --rdzv-backend=etcd-v2 --rdzv-endpoint=etcd:2379 --rdzv-id=7.2 --nnodes=2 t.py");
}

/* As argparse reads them. */
static void spellings_are_those_of_argparse(void **state)
{
	(void)state;
	check(&two_of_four, "torchrun --nnode 4 --rdzv-b c10d --rdzv_en n1:1 --rdzv-i=1 -- t.py",
	      "torchrun --nnode 2 --rdzv-b c10d --rdzv_en n3:30001 --rdzv-i=7.2 -- t.py");
	check(&two_of_four, "torchrun --nnodes 4 --nnodes=4 --rdzv-backend c10d --rdzv-backend static t.py",
	      "torchrun --master_addr=n3 --master_port=30001 --nnodes 2 --nnodes=2 --rdzv-backend c10d --rdzv-backend "
	      "static t.py");
	check(&two_of_four, "torchrun --tee 3 --redirects=1 -r0 --max_restarts 3 t.py",
	      "torchrun --nnodes=2 --master_addr=n3 --master_port=30001 --tee 3 --redirects=1 -r0 --max_restarts 3 "
	      "t.py");
	check(&two_of_four, "torchrun --no-python ./train --nnodes=4 a~b",
	      "torchrun --nnodes=2 --master_addr=n3 --master_port=30001 --no-python ./train --nnodes=4 'a b'");
}

static void an_unknown_option_is_left(void **state)
{
	struct words from;
	struct wlb_launcher found;
	(void)state;
	check(&two_of_four, "torchrun --new-option 4 --nnodes=4 t.py", "torchrun --new-option 4 --nnodes=4 t.py");
	check(&two_of_four, "torchrun --nnodes=4 -z t.py", "torchrun --nnodes=4 -z t.py");
	check(&two_of_four, "torchrun --rdzv 1 --nnodes=4 t.py", "torchrun --rdzv 1 --nnodes=4 t.py");
	check(&two_of_four, "accelerate launch --num_proc 4 t.py", "accelerate launch --num_proc 4 t.py");
	check(&two_of_four, "torchrun --new=4 --flag --nnodes=4 t.py",
	      "torchrun --master_addr=n3 --master_port=30001 --new=4 --flag --nnodes=2 t.py");
	assert_true(wlb_launcher_find(split(&from, "torchrun --nnodes=4 --new-option 4 t.py"), &found));
	assert_int_equal(found.unknown, 2);
}

static void torchrun_of_one_node(void **state)
{
	const struct wlb_launcher_facts one = {
		.nodes = 1, .first_nodes = 1, .id = "7.1", .address = "n1", .port = 30000};
	(void)state;
	check(&one, "torchrun --standalone --nproc-per-node=8 t.py", "torchrun --standalone --nproc-per-node=8 t.py");
	refused(&two_of_four, "torchrun --standalone t.py",
	        "torchrun --standalone: each node would train on its own; remove it");
	refused(&two_of_four, "torchrun --local-addr n1 t.py", "torchrun --local-addr n1: all nodes");
}

static void accelerate_gets_its_processes(void **state)
{
	const struct wlb_launcher_facts gpus = {
		.nodes = 3, .first_nodes = 4, .gpus_per_node = 8, .id = "7.2", .address = "n2", .port = 30001};
	(void)state;
	check(&two_of_four,
	      "accelerate launch --num_processes 8 --num_machines 4 --machine_rank $N --main_process_ip n1 "
	      "--main_process_port=1 --multi_gpu t.py --num_processes 8",
	      "sh -c 'exec \"$0\" launch --machine_rank=\"$SLURM_PROCID\" \"$@\"' accelerate --num_processes 4 "
	      "--num_machines 2 --main_process_ip n3 --main_process_port=30001 --multi_gpu t.py --num_processes 8");
	check(&two_of_four, "python -u -m accelerate.commands.launch --num-processes=16 --same-network t.py",
	      "sh -c 'exec \"$0\" -u -m accelerate.commands.launch --machine_rank=\"$SLURM_PROCID\" \"$@\"' python "
	      "--num_machines=2 --main_process_ip=n3 --main_process_port=30001 --num-processes=8 --same-network t.py");
	check(&gpus, "accelerate launch t.py",
	      "sh -c 'exec \"$0\" launch --machine_rank=\"$SLURM_PROCID\" \"$@\"' accelerate --num_processes=24 "
	      "--num_machines=3 --main_process_ip=n2 --main_process_port=30001 t.py");
	check(&two_of_four, "python -W it's -m accelerate.commands.launch --num_processes 4 t.py",
	      "sh -c 'exec \"$0\" -W '\\''it'\\''\\'\\'''\\''s'\\'' -m accelerate.commands.launch "
	      "--machine_rank=\"$SLURM_PROCID\" \"$@\"' python --num_machines=2 --main_process_ip=n3 "
	      "--main_process_port=30001 --num_processes 2 t.py");
	refused(&two_of_four, "accelerate launch --num_processes 6 t.py", "must be a multiple of the 4 nodes");
	refused(&two_of_four, "accelerate launch --num_processes all t.py", "--num_processes");
	refused(&two_of_four, "accelerate launch t.py", "--num_processes is missing");
	refused(&gpus, "accelerate launch --config_file c.yaml t.py", "--num_processes is missing");
	refused(&two_of_four, "accelerate launch --mpirun_hostfile hosts t.py", "--mpirun_hostfile hosts: the hosts");
	refused(&two_of_four, "accelerate launch --use_deepspeed --num_processes 4 t.py",
	        "--deepspeed_multinode_launcher is 'pdsh'");
}

static void deepspeed_is_started_on_each_node(void **state)
{
	const struct wlb_launcher_facts one = {
		.nodes = 1, .first_nodes = 1, .id = "7.1", .address = "n1", .port = 30000};
	(void)state;
	check(&two_of_four,
	      "deepspeed --no_ssh --hostfile=hosts --node_rank 0 --master_addr=n1 t.py --deepspeed c.json",
	      "sh -c 'exec \"$0\" --node_rank=\"$SLURM_PROCID\" \"$@\"' deepspeed --num_nodes=2 --master_port=30001 "
	      "--no_ssh --hostfile=hosts --master_addr=n3 t.py --deepspeed c.json");
	check(&one, "deepspeed --num_gpus 8 t.py", "deepspeed --num_gpus 8 t.py");
	refused(&two_of_four, "deepspeed --hostfile hosts t.py", "add --no_ssh");
	refused(&two_of_four, "deepspeed --no_ssh t.py", "--hostfile is missing");
	refused(&two_of_four, "deepspeed --no_ssh -H hosts -i n1@n2 t.py", "deepspeed -i n1@n2: these nodes");
}

static void processes_of_a_node(void **state)
{
	static const struct {
		const char *command;
		int gpus, count; /* 0: refused */
	} cases[] = {
		{"torchrun t.py", 8, 1},
		{"torchrun --nproc_per_node 4 t.py --nproc-per-node 2", 0, 4},
		{"torchrun --nproc-per-node=gpu t.py", 8, 8},
		{"torchrun --nproc-per-node=auto t.py", 0, 0},
		{"torchrun --nproc-per-node=cpu t.py", 8, 0},
		{"torchrun --no-such 3 t.py", 8, 0},
		{"accelerate launch --num_processes 16 --num_machines 4 t.py", 0, 4},
		{"accelerate launch t.py", 8, 8},
		{"accelerate launch --num_processes 15 t.py", 8, 0},
		{"deepspeed --no_ssh t.py", 8, 8},
		{"deepspeed --no_ssh --num_gpus 2 t.py", 8, 2},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct wlb_launcher_facts facts = {.nodes = 4, .first_nodes = 4, .gpus_per_node = cases[i].gpus};
		struct words from;
		struct wlb_launcher launcher;
		struct wlb_error error;
		char **words = split(&from, cases[i].command);
		int count = 0;
		assert_true(wlb_launcher_find(words, &launcher));
		if (wlb_launcher_processes(words, &launcher, &facts, &count, &error) != (cases[i].count > 0 ? 0 : -1))
			fail_msg("%s: %d", cases[i].command, count);
		if (cases[i].count > 0)
			assert_int_equal(count, cases[i].count);
	}
}

static void a_long_line_is_cut(void **state)
{
	char *const words[] = {"torchrun", "train.py", "--lr=3", NULL};
	char line[24];
	(void)state;
	wlb_launcher_line(words, line, sizeof(line));
	assert_string_equal(line, "torchrun train.py ...");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(launchers_are_found),           cmocka_unit_test(other_commands_have_none),
		cmocka_unit_test(torchrun_gets_its_nodes),       cmocka_unit_test(spellings_are_those_of_argparse),
		cmocka_unit_test(an_unknown_option_is_left),     cmocka_unit_test(torchrun_of_one_node),
		cmocka_unit_test(accelerate_gets_its_processes), cmocka_unit_test(deepspeed_is_started_on_each_node),
		cmocka_unit_test(processes_of_a_node),           cmocka_unit_test(a_long_line_is_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
