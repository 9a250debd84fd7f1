#include "common/command.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/nearest.h"
#include "common/show.h"

static const struct wlb_command *find_command(const struct wlb_program *program, const char *name)
{
	for (int i = 0; i < program->count; i++)
		if (program->commands[i]->options != NULL && strcmp(program->commands[i]->name, name) == 0)
			return program->commands[i];
	return NULL;
}

static void print_help(const struct wlb_program *program)
{
	printf("Usage: %s COMMAND [OPTIONS]\n\n", program->name);
	wlb_options_print_wrapped(program->about, 0, stdout);
	puts("\nCommands:");
	for (int i = 0; i < program->count; i++)
		printf("  %-10s %s\n", program->commands[i]->name, program->commands[i]->summary);
	printf("\n'%s help COMMAND' explains one.\n", program->name);
	if (program->notes != NULL)
		wlb_options_print_wrapped(program->notes, 0, stdout);
}

static void print_completion(const struct wlb_program *program)
{
	printf("\t'%s' | '%s help') words='", program->name, program->name);
	for (int i = 0; i < program->count; i++)
		printf("%s ", program->commands[i]->name);
	puts("help --help --version' ;;");
	for (int i = 0; i < program->count; i++)
		if (program->commands[i]->options != NULL)
			wlb_options_print(program->commands[i]->options, WLB_OPTIONS_COMPLETION, stdout);
}

static int run_command(const struct wlb_command *command, int argc, char **argv)
{
	struct wlb_error error = {0};
	if (command->main != NULL)
		return command->main(argc, argv);
	int code = WLB_EXIT_USAGE;
	void *values = calloc(1, command->values_bytes);
	int asked = values != NULL ? wlb_options_parse(command->options, argc, argv, values, &error)
	                           : wlb_fail(&error, "out of memory");
	if (asked == WLB_OPTIONS_READ) {
		code = command->run(values, &error);
	} else if (asked > 0) {
		wlb_options_print(command->options, (enum wlb_options_asked)asked, stdout);
		code = WLB_EXIT_DONE;
	}
	if (code != WLB_EXIT_DONE && error.message[0] != '\0')
		fprintf(stderr, "%s: %s\n", command->options->command, error.message);
	if (values != NULL)
		wlb_options_free(command->options, values);
	free(values);
	return code;
}

static int run_named(const struct wlb_program *program, int argc, char **argv)
{
	const struct wlb_command *command = find_command(program, argv[0]);
	if (command != NULL)
		return run_command(command, argc, argv);
	bool option = argv[0][0] == '-';
	struct wlb_nearest nearest = {.word = argv[0]};
	int code = -1;
	if (program->external != NULL && !option && strlen(argv[0]) < NAME_MAX - 8 && strchr(argv[0], '/') == NULL)
		code = program->external(argv);
	if (code >= 0)
		return code;
	for (int i = 0; !option && i < program->count; i++)
		wlb_nearest_consider(&nearest, program->commands[i]->name);
	wlb_show_line(stderr, "%s: %s '%.60s' is unknown%s%s%s; see '%s --help'", program->name,
	              option ? "option" : "command", argv[0], nearest.name != NULL ? "; the nearest is '" : "",
	              nearest.name != NULL ? nearest.name : "", nearest.name != NULL ? "'" : "", program->name);
	return WLB_EXIT_USAGE;
}

static int run_words(const struct wlb_program *program, int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	if (*name == '\0') {
		fprintf(stderr, "%s: a command is needed, such as '%s %s'; see '%s --help'\n", program->name,
		        program->name, program->commands[0]->name, program->name);
		return WLB_EXIT_USAGE;
	}
	if (strcmp(name, "help") == 0 && argc > 2)
		return run_named(program, 2, (char *[]){argv[2], "--help", NULL});
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
		print_help(program);
	else if (strcmp(name, "--version") == 0)
		puts(program->version);
	else if (strcmp(name, "--help=completion") == 0)
		print_completion(program);
	else
		return run_named(program, argc - 1, argv + 1);
	return WLB_EXIT_DONE;
}

/* A command whose output was not written completely (a full disk) has failed. */
static int check_output(const char *name, int code)
{
	if (code != WLB_EXIT_DONE || (fflush(stdout) == 0 && !ferror(stdout)))
		return code;
	fprintf(stderr, "%s: output could not be written: %s\n", name, strerror(errno));
	return WLB_EXIT_FAILED;
}

/* A parent may have left SIGCHLD ignored, as `trap '' CHLD` in a job script does. The kernel would then discard the
 * ends of children, and a program that waits for one would not learn how, or that, it ended. */
static void keep_ends_of_children(void)
{
	signal(SIGCHLD, SIG_DFL);
}

int wlb_program_main(const struct wlb_program *program, int argc, char **argv)
{
	keep_ends_of_children();
	return check_output(program->name, run_words(program, argc, argv));
}

int wlb_command_main(const struct wlb_command *command, int argc, char **argv)
{
	keep_ends_of_children();
	return check_output(command->options->command, run_command(command, argc, argv));
}
