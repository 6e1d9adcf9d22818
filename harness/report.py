def write(folder): pass
