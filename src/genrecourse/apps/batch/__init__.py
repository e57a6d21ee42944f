"""Plans for more people than one table holds: `genrecourse batch` and its engines.

    inputs.py    the rows of a CSV or of Parquet files, divided into parts
    output.py    the folder of parts: what it was started with, what is done, what it holds
    run.py       one run: start or continue, let an engine do the parts that are missing, finish
    local.py     the engine of one machine: processes
    on_ray.py    the engine Ray, also for a Ray Dataset of your own
    on_spark.py  the engine Spark, also for a Spark DataFrame of your own
    verify.py    every plan of an output, checked again

What is done with a batch of people is `advice.batch`; an engine only says where.
"""
