/* A calculator as a program: WLB_COMMAND is the one that it runs. */
#include <locale.h>

#include "planner/cli/commands.h"

int main(int argc, char **argv)
{
	setlocale(LC_CTYPE, ""); /* for the widths of characters */
	return wlb_command_main(&WLB_COMMAND, argc, argv);
}
