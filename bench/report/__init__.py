"""Result files, and what is made of them: the table of goals, bench/README.md, its chart, and the figures in documents."""
