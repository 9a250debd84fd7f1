#include "coordinator/wlb/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int wlb_command_fail(const struct wlb_command *self, int code, const char *message)
{
	fprintf(stderr, "wlb %s: %s\n", self->name, message);
	return code;
}

int wlb_command_option(const struct wlb_command *self, int argc, char **argv, const struct option *options)
{
	opterr = 0;
	int before = optind;
	int option = getopt_long(argc, argv, self->takes_command ? "+:h" : ":h", options, NULL);
	/* Of several short ones in a word, getopt passes the word after the last. */
	const char *word = argv[optind > before ? optind - 1 : optind];
	if (option == WLB_OPTION_HELP) {
		fputs(self->help, stdout);
	} else if (option == ':') {
		fprintf(stderr, "wlb %s: option '%s' needs a value; see 'wlb help %s'\n", self->name, word, self->name);
		return WLB_OPTION_WRONG;
	} else if (option == WLB_OPTION_WRONG) {
		fprintf(stderr, "wlb %s: option '%s' is unknown, ambiguous or takes no value; see 'wlb help %s'\n",
		        self->name, word, self->name);
	}
	return option;
}

int wlb_command_number(const char *option, const char *text, long minimum, long maximum, int *number,
                       struct wlb_error *error)
{
	char *end;
	errno = 0;
	long value = strtol(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || value < minimum || value > maximum)
		return wlb_fail(error, "%s '%.40s': must be a whole number from %ld to %ld", option, text, minimum,
		                maximum);
	*number = (int)value;
	return 0;
}

int wlb_command_real(const char *option, const char *text, double minimum, double maximum, double *number,
                     struct wlb_error *error)
{
	char *end;
	double value = strtod(text, &end);
	if (end == text || *end != '\0' || !(value >= minimum && value <= maximum))
		return wlb_fail(error, "%s '%.40s': must be a number from %g to %g", option, text, minimum, maximum);
	*number = value;
	return 0;
}
