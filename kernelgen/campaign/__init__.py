"""The verb `campaign`: generation and judging put together, until the budget, the floor or exhaustion.

`settings` says what was asked, `view` what the log knows of it, `drive` does the next thing that the log lacks.
`rounds` takes candidates to a GPU elsewhere, `recorded` answers from verdicts that were brought back before, `summary`
tells what came of it, `profiling` takes a profile where the GPU is here. A campaign has no memory but the log, so the
same command goes on wherever it was killed.
"""
