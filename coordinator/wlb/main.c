#include <locale.h>

#include "coordinator/wlb/program.h"

int main(int argc, char **argv)
{
	setlocale(LC_CTYPE, ""); /* for the widths of characters */
	return wlb_program_main(&wlb_command_program, argc, argv);
}
